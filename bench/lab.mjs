import { buildEnvironment } from './built.mjs'
import { LOAD_CORE, PROXY_CORE, startChild } from './child-process.mjs'
import { canReadProcesses, mainThreadsMicroseconds } from './process-tree.mjs'

const file = (path) => new URL(path, import.meta.url)

/** Starts the mock vendor and the load driver, which serve all scenarios. */
export async function openLab() {
  const vendor = await startChild(file('./mock-vendor.mjs'), { core: LOAD_CORE })
  const driver = await startChild(file('./driver.mjs'), { core: LOAD_CORE })
  return {
    driver,
    vendor,
    /**
     * Starts a proxy in front of the vendor.
     * @param {{ name: string, launch?: Function, node?: object, build?: object }} proxy a variant of a module of `proxies/`; one
     *   that `proxy-process.mjs` cannot serve brings its own `launch`
     */
    async startProxy(proxy) {
      const upstreamPort = vendor.ready.port
      const runtime = runtimeOf(proxy)
      if (proxy.launch !== undefined) return proxy.launch({ upstreamPort, core: PROXY_CORE, runtime })
      return nodeProxy(proxy, { upstreamPort, runtime })
    },
    async close() {
      await driver.stop()
      await vendor.stop()
    },
  }
}

/** Options of `startChild` to run a variant on its Node version and from its build. */
function runtimeOf({ node, build }) {
  return {
    ...(node === undefined ? {} : { program: node.program }),
    environment: buildEnvironment(build),
  }
}

async function nodeProxy({ name }, { upstreamPort, runtime }) {
  const child = await startChild(file('./proxy-process.mjs'), {
    ...runtime,
    core: PROXY_CORE,
    execArguments: ['--expose-gc'],
    arguments: [file(`./proxies/${name}.mjs`).href, String(upstreamPort)],
  })
  return { port: child.ready.port, ...answersOf(child) }
}

/** Functions that query a Node program about itself, as the measurements need them. */
export function answersOf(child) {
  return {
    /** CPU time used since the start, in microseconds. */
    cpuMicroseconds: () => child.ask('cpuMicroseconds'),
    mainThreadMicroseconds: async () => (canReadProcesses ? mainThreadsMicroseconds(child.pid) : undefined),
    /** Memory after a collection, `resident` and `used` bytes, and `peakResident`, the highest value so far. */
    memoryBytes: () => child.ask('memoryBytes'),
    /** `{ balance, held }` in nano-dollars; undefined for proxies without accounts. */
    account: () => child.ask('account'),
    startProfile: () => child.ask('startProfile'),
    stopProfile: () => child.ask('stopProfile'),
    stop: child.stop,
  }
}
