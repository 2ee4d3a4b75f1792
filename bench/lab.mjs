import { LOAD_CORE, PROXY_CORE, startChild } from './child-process.mjs'

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
     * @param {{ name: string, launch?: Function }} proxy a module of `proxies/`; one that `proxy-process.mjs` cannot serve brings its
     *   own `launch`
     */
    async startProxy(proxy) {
      const upstreamPort = vendor.ready.port
      if (proxy.launch !== undefined) return proxy.launch({ upstreamPort, core: PROXY_CORE })
      return nodeProxy(proxy, upstreamPort)
    },
    async close() {
      await driver.stop()
      await vendor.stop()
    },
  }
}

async function nodeProxy({ name }, upstreamPort) {
  const child = await startChild(file('./proxy-process.mjs'), {
    core: PROXY_CORE,
    execArguments: ['--expose-gc'],
    arguments: [file(`./proxies/${name}.mjs`).href, String(upstreamPort)],
  })
  return { port: child.ready.port, ...answersOf(child) }
}

/** What a Node program answers about itself, as the measurements ask for it. */
export function answersOf(child) {
  return {
    /** CPU time used since the start, in microseconds. */
    cpuMicroseconds: () => child.ask('cpuMicroseconds'),
    /** Memory after a collection, `resident` and `used` bytes, and `peakResident`, the most there ever was. */
    memoryBytes: () => child.ask('memoryBytes'),
    /** `{ balance, held }` in nano-dollars; undefined for proxies that keep no accounts. */
    account: () => child.ask('account'),
    startProfile: () => child.ask('startProfile'),
    stopProfile: () => child.ask('stopProfile'),
    stop: child.stop,
  }
}
