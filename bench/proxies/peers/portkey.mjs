import { startChild } from '../../child-process.mjs'
import { answersOf } from '../../lab.mjs'
import { peerFile, peerVersion } from '../../peer-packages.mjs'
import { accepts, freePort } from '../../program-process.mjs'

export const name = 'peers/portkey'
export const title = 'Portkey gateway'
export const isPeer = true
/** Whether the proxy translates model ids. Portkey returns the vendor's id. */
export const isTranslating = false

const PACKAGE = '@portkey-ai/gateway'
const READY_WITHIN_MS = 30_000

export const version = () => peerVersion(PACKAGE)

/** The package's own start script. Each request names the vendor as an OpenAI-compatible server with its own address. */
export async function launch({ upstreamPort, core, runtime }) {
  const port = await freePort()
  const child = await startChild(peerFile(PACKAGE, 'build/start-server.js'), {
    ...runtime,
    core,
    execArguments: ['--expose-gc', '--import', new URL('../../preload.mjs', import.meta.url).href],
    arguments: [`--port=${port}`, '--headless'],
    output: 'ignore',
  })
  if (!(await accepts(port, { deadline: performance.now() + READY_WITHIN_MS }))) {
    await child.stop()
    throw new Error('Portkey does not accept connections')
  }
  const requestHeaders = ['x-portkey-provider: openai', `x-portkey-custom-host: http://127.0.0.1:${upstreamPort}/v1`]
  return { port, requestHeaders, ...answersOf(child) }
}
