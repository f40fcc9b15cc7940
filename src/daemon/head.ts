/** The user's HEAD, asked of one git process that stays: git resolves its refs anew for each question. */
import { type Env, lstatIfThere } from '../env.ts'
import { LineProcess } from '../git/line-process.ts'
import { HEAD_QUESTIONS, type HeadState, headAnswers, type Repository, readHead } from '../git/repository.ts'
import { fingerprint } from '../snapshot/disk.ts'

export class HeadReader {
  readonly #env: Env
  readonly #repository: Repository
  readonly #process: LineProcess
  /** HEAD's branch, and the fingerprint of the file that names it. */
  #branch: { name: string | null; print: string } | null = null

  constructor(env: Env, repository: Repository) {
    this.#env = env
    this.#repository = repository
    this.#process = new LineProcess(env, { args: ['cat-file', '--batch-check=%(objectname)'], cwd: repository.root })
  }

  async read(): Promise<HeadState> {
    const { files } = this.#env
    const { gitDir } = this.#repository
    const stats = lstatIfThere(files, `${gitDir}/HEAD`)
    // In a reftable repository HEAD is only a stub: git is asked in full.
    const stub = files.existsSync(`${this.#repository.commonDir}/reftable`)
    if (!stats || stub) return readHead(this.#env, this.#repository)
    const print = fingerprint(stats)
    if (this.#branch?.print !== print) {
      const head = await readHead(this.#env, this.#repository)
      this.#branch = { name: head.branch, print }
      return head
    }
    const questions = HEAD_QUESTIONS.split('\n').length - 1
    const answers = await this.#process.ask(HEAD_QUESTIONS, questions).catch(() => null) // it was killed, or hung
    if (!answers) return readHead(this.#env, this.#repository)
    return { ...headAnswers(this.#env, this.#repository, answers), branch: this.#branch.name }
  }

  close(): void {
    this.#process.close()
  }
}
