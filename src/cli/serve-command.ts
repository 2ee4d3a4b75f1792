import { commandArguments } from './command-arguments.ts'
import { consoleLogger } from './console-logger.ts'
import { type RunningServer, serve } from './serve.ts'
import type { Terminal } from './terminal.ts'

/**
 * `signalbox serve [--sandbox]`: returns once the server listens; it ends with the process. SIGTERM or SIGINT let requests
 * end first, a second one does not. SIGHUP reads the price file again.
 * @throws SettingError for a setting that cannot be used.
 */
export async function serveCommand(words: readonly string[], terminal: Terminal, version: string): Promise<void> {
  const given = commandArguments(words, { options: [], flags: ['sandbox'], positionals: [] })
  const starting = serve({ ...terminal, useStandIns: given.flag('sandbox'), version })
  // Listened for at once: whoever reads that the server listens may send a signal before anything else runs here.
  stopOnSignal(async () => (await starting).close())
  reloadOnSignal(terminal, starting)
  await starting
}

/** Without a price file a hang-up ends the process, as usual. */
function reloadOnSignal({ environment }: Terminal, starting: Promise<RunningServer>): void {
  const path = environment['SIGNALBOX_PRICES']?.trim()
  if (path === undefined || path === '') return
  process.on('SIGHUP', () => {
    starting.then(
      (running) => reload(running),
      // The start failed, and its error is on the way out.
      () => undefined,
    )
  })
}

function reload({ reloadPrices }: RunningServer): void {
  try {
    reloadPrices?.()
    consoleLogger.info('the prices were read again')
  } catch (error) {
    consoleLogger.error('the prices were not replaced; the last good ones stay', {
      fault: error instanceof Error ? error.message : String(error),
    })
  }
}

function stopOnSignal(close: () => Promise<void>): void {
  let isStopping = false
  const stop = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        consoleLogger.error('not everything could be closed', { error })
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}
