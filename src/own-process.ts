/** What only the system knows of this process: where it is, and who runs it. */

/** As the system has it. A user that it does not know has none of his own. */
export function homeOfUser(): string {
  try {
    return process.getBuiltinModule('node:os').userInfo().homedir
  } catch {
    return '/'
  }
}

/**
 * Where this process is. A directory that is there no more by the name that it had, or that the shell knows; where that is
 * another one's by now, by one that is nobody's.
 */
export function currentDirectory(): string {
  try {
    return process.cwd()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  const { PWD } = process.env
  const name = nameOfDeleted() ?? (PWD?.startsWith('/') ? PWD : '/')
  return fileSystem().existsSync(name) ? `${name}${DELETED}` : name
}

const fileSystem = () => process.getBuiltinModule('node:fs')

/** Behind the name of a directory that is there no more: proc(5), /proc/pid/cwd. */
const DELETED = ' (deleted)'

function nameOfDeleted(): string | null {
  try {
    const name = fileSystem().readlinkSync('/proc/self/cwd')
    return name.endsWith(DELETED) ? name.slice(0, -DELETED.length) : null
  } catch {
    return null // a system without proc(5)
  }
}
