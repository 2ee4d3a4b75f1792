import type { ActionDefinition, CommandArguments } from './command.ts'
import { CONFIG_OPTION, readConfiguration } from './configuration.ts'
import { type RunningServer, serve } from './serve.ts'
import { readServeFlags, SERVE_FLAGS } from './serve-flags.ts'
import { SETTING_OPTIONS, secretLines } from './settings.ts'
import type { Environment, Terminal } from './terminal.ts'

/** Packages that some settings need. */
const PACKAGES = `Packages to install when a store asks for them: pg (postgres://…), ioredis (REDIS_URL),
@photostructure/sqlite (sqlite:PATH on a Node whose own SQLite is missing or too old)`

/** Command `signalbox serve`. */
export function serveCommand(version: string): ActionDefinition {
  const options = {
    ...SERVE_FLAGS,
    ...CONFIG_OPTION,
    ...SETTING_OPTIONS,
  }
  return {
    summary: 'serve the gateway on http://127.0.0.1:8787',
    options,
    after: `${secretLines()}\n\n${PACKAGES}`,
    run: (given, terminal) => startServer(given, terminal, version, options),
  }
}

/**
 * Returns once the server listens. SIGTERM or SIGINT end the process after the requests in progress; a second one ends it
 * immediately. SIGHUP reads the price file again.
 * @throws SettingError for a setting that cannot be used.
 */
async function startServer(
  given: CommandArguments,
  terminal: Terminal,
  version: string,
  options: object,
): Promise<void> {
  const configuration = await readConfiguration(given, terminal.environment, (name) => Object.hasOwn(options, name))
  const { environment, documents, gateway, named } = configuration
  const starting = serve({
    ...terminal,
    environment,
    documents,
    gateway,
    ...readServeFlags(given, configuration),
    version,
  }).catch((error: unknown) => {
    throw named(error)
  })
  // Comes first, because a signal may arrive as soon as the server has printed that it listens.
  stopOnSignal(starting)
  reloadOnSignal(environment, starting)
  await starting
}

/** Without a price file SIGHUP ends the process, as usual. */
function reloadOnSignal(environment: Environment, starting: Promise<RunningServer>): void {
  const path = environment['SIGNALBOX_PRICES']?.trim()
  if (path === undefined || path === '') return
  process.on('SIGHUP', () => {
    starting.then(
      (running) => reload(running),
      // The start failed, and `main` reports the error.
      () => undefined,
    )
  })
}

function reload({ reloadPrices, logger }: RunningServer): void {
  try {
    const counted = reloadPrices?.()
    logger.info('the prices were read again', { ...counted })
  } catch (error) {
    logger.error('the prices were not replaced; the last good ones stay', {
      fault: error instanceof Error ? error.message : String(error),
    })
  }
}

function stopOnSignal(starting: Promise<RunningServer>): void {
  let isStopping = false
  const stop = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    starting.then(
      (running) => stopped(running),
      // The start failed, and `main` reports the error.
      () => undefined,
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

async function stopped({ close, logger }: RunningServer): Promise<never> {
  try {
    await close()
    process.exit(0)
  } catch (error) {
    logger.error('not everything could be closed', { error })
    process.exit(1)
  }
}
