/** Another pid namespace, as a container has one: its processes end with the first of them. */
import { spawnSync } from 'node:child_process'

/** unshare(1) and its options; what runs inside comes after them. */
export const CONTAINER = ['unshare', '--user', '--map-current-user', '--pid', '--fork', '--mount-proc', '--kill-child']

export const canContain = spawnSync(CONTAINER[0]!, [...CONTAINER.slice(1), 'true']).status === 0
