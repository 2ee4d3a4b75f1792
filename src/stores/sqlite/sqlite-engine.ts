import { type SqliteDatabase, SqliteStoreError } from './sqlite-database.ts'

/**
 * Oldest safe SQLite version. Earlier ones can corrupt a database in WAL mode if two connections write and checkpoint at the same
 * moment (SQLite, "Write-Ahead Logging", the WAL-reset bug; fixed in 3.51.3).
 */
const OLDEST_SQLITE = '3.51.3'

/** Package with the API of `node:sqlite`, for Node versions that lack it or bundle an old SQLite. */
const SQLITE_PACKAGE = '@photostructure/sqlite'

interface EngineModule {
  readonly DatabaseSync: new (path: string) => SqliteDatabase
}

/**
 * Opens a database file with Node's own SQLite, or with `@photostructure/sqlite` if Node has no recent one.
 * @throws SqliteStoreError `engine_missing` or `engine_too_old` with the package to install; the engine's error if the file
 *   cannot be opened.
 */
export async function openWithEngine(path: string): Promise<SqliteDatabase> {
  const builtin = builtinEngine()
  const builtinVersion = builtin === undefined ? undefined : versionOf(new builtin.DatabaseSync(':memory:'), true)
  if (builtin !== undefined && builtinVersion !== undefined && isTrusted(builtinVersion))
    return new builtin.DatabaseSync(path)

  const standIn = await standInEngine(builtinVersion)
  const version = versionOf(new standIn.DatabaseSync(':memory:'), true)
  if (!isTrusted(version)) throw tooOld(`${SQLITE_PACKAGE} has SQLite ${version}`, `update ${SQLITE_PACKAGE}`)
  return new standIn.DatabaseSync(path)
}

/**
 * Checks the SQLite version of a database that the host opened.
 * @throws SqliteStoreError `engine_too_old`.
 */
export function assertTrustedEngine(database: SqliteDatabase): void {
  const version = versionOf(database, false)
  if (!isTrusted(version)) throw tooOld(`the given database has SQLite ${version}`, 'update the package that opened it')
}

function builtinEngine(): EngineModule | undefined {
  // Undefined on Node before 22.13, where the module does not exist or needs a flag.
  return process.getBuiltinModule?.('node:sqlite') as EngineModule | undefined
}

async function standInEngine(builtinVersion: string | undefined): Promise<EngineModule> {
  try {
    // A variable and comments, so that bundlers leave this import of an optional package to Node.
    const name: string = SQLITE_PACKAGE
    const loaded = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as EngineModule & {
      readonly default?: EngineModule
    }
    return loaded.DatabaseSync === undefined && loaded.default !== undefined ? loaded.default : loaded
  } catch (cause) {
    const have = `Node ${process.versions.node} ${builtinVersion === undefined ? 'has no SQLite' : `bundles SQLite ${builtinVersion}`}`
    const wanted = `the SQLite store needs SQLite ${OLDEST_SQLITE} or newer`
    const remedy =
      `install ${SQLITE_PACKAGE} next to signalbox (npm install ${SQLITE_PACKAGE}), or use a Node with a newer SQLite. If it is installed, the ` +
      "bundle cannot load it. Keep signalbox out of the bundle, in next.config: serverExternalPackages: ['signalbox'], and with output: " +
      `'standalone' also outputFileTracingIncludes: { '/*': ['node_modules/${SQLITE_PACKAGE}/**', 'node_modules/node-gyp-build/**'] }`
    const fault = builtinVersion === undefined ? 'engine_missing' : 'engine_too_old'
    throw new SqliteStoreError(fault, `${have}, and ${SQLITE_PACKAGE} could not be loaded; ${wanted}: ${remedy}`, cause)
  }
}

function versionOf(database: SqliteDatabase, ownsDatabase: boolean): string {
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { readonly version: string }
  if (ownsDatabase) database.close()
  return version
}

/** Whether a version such as `3.51.3` is recent enough. */
export function isTrusted(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const [wantedMajor = 0, wantedMinor = 0, wantedPatch = 0] = OLDEST_SQLITE.split('.').map(Number)
  if (major !== wantedMajor) return major > wantedMajor
  if (minor !== wantedMinor) return minor > wantedMinor
  return patch >= wantedPatch
}

function tooOld(found: string, remedy: string): SqliteStoreError {
  return new SqliteStoreError(
    'engine_too_old',
    `${found}, which can damage a database that several connections write; ${OLDEST_SQLITE} or newer is needed: ${remedy}`,
  )
}
