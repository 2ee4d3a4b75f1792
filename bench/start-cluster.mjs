import { startChild } from './child-process.mjs'
import { mainThreadsMicroseconds, processTreeUsage } from './process-tree.mjs'

/**
 * Starts a gateway in several processes, with the `settings` of `cluster-process.mjs`. CPU is that of the first process, which
 * accepts connections, and of all workers.
 * @param {{ core?: number, runtime: object, settings: object, onStop?: () => unknown }} options `onStop`: after it has ended
 */
export async function startCluster({ core, runtime, settings, onStop }) {
  const child = await startChild(new URL('./cluster-process.mjs', import.meta.url), {
    ...runtime,
    ...(core === undefined ? {} : { core }),
    arguments: [JSON.stringify(settings)],
  })
  return {
    port: child.ready.port,
    cpuMicroseconds: async () => processTreeUsage(child.pid).cpuMicroseconds,
    mainThreadMicroseconds: async () => mainThreadsMicroseconds(child.pid),
    account: () => child.ask('account'),
    answersByWorker: () => child.ask('answersByWorker'),
    stop: async () => {
      await child.stop()
      await onStop?.()
    },
  }
}
