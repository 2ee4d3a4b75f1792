/** Variable that names the build to measure instead of `dist/`, for `--compare`. */
const VARIABLE = 'SIGNALBOX_BENCH_BUILD'

/** The folder of the build that this process measures, with a slash at its end. */
export const BUILD = process.env[VARIABLE] ?? new URL('../dist/', import.meta.url).href

/** Imports an entry of the package, such as `index` or `node`, from the build that this process measures. */
export const importBuilt = (entry) => import(new URL(`${entry}.js`, BUILD).href)

/** Environment in which a process measures a build; the build of this process by default. */
export const buildEnvironment = (build) => ({ [VARIABLE]: build?.folder ?? BUILD })
