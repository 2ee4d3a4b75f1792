// Measures the parts of the time to the first byte: sends one stream at a time through the gateway and the bare proxy, in turns, and
// records each handover inside of them. Then measures each later chunk of the streams in the same way.
//
//   node bench/first-byte-trace.mjs [streams of each proxy] [milliseconds between streams]
//
// Prints medians in microseconds. Without a pause the processor is warm; with a pause, caches are as cold as under light load.
import { Agent, request } from 'node:http'
import { LOAD_CORE, PROXY_CORE, startChild } from './child-process.mjs'
import { API_KEY, chatBody } from './requests.mjs'
import { HANDOVERS } from './trace-handovers.mjs'

const streamCount = Number(process.argv[2] ?? 300)
const pauseMs = Number(process.argv[3] ?? 0)
/** Bursts of 16 requests, so that Node has compiled the measured code. */
const WARM_UP = 6_000
const WARM_UP_PARALLEL = 16
const FIRST = Object.values(HANDOVERS)
const LATER = [HANDOVERS.answered, HANDOVERS.bytesWritten, HANDOVERS.sentToCaller]
const PROXIES = ['bare', 'gateway']

const file = (path) => new URL(path, import.meta.url)
const bodyOf = (model) => JSON.stringify({ ...chatBody(model), stream: true, stream_options: { include_usage: true } })
const BURST = bodyOf('bench-chat-burst')
const BRIEF = bodyOf('bench-chat-brief')

const vendor = await startChild(file('./mock-vendor.mjs'), { core: LOAD_CORE })
const proxies = []
for (const name of PROXIES) {
  const child = await startChild(file('./traced-proxy-process.mjs'), {
    core: PROXY_CORE,
    arguments: [file(`./proxies/${name}.mjs`).href, String(vendor.ready.port)],
  })
  proxies.push({ name, child, agent: new Agent({ keepAlive: true }), firstByteMs: [] })
}
for (const proxy of proxies) {
  const lane = async () => {
    for (let sent = 0; sent < WARM_UP / WARM_UP_PARALLEL; sent++) await stream(proxy, BURST)
  }
  await Promise.all(Array.from({ length: WARM_UP_PARALLEL }, lane))
}
for (const proxy of proxies) {
  await proxy.child.ask('takeNotes')
  proxy.firstByteMs = []
}
for (let index = 0; index < streamCount; index++) {
  for (const proxy of proxies) {
    await stream(proxy, BRIEF)
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
for (const proxy of proxies) proxy.notes = await proxy.child.ask('takeNotes')

print('the first byte', FIRST, (notes) => notes.map(({ first }) => first))
print('one later piece', LATER, (notes) => notes.flatMap(({ pieces }) => pieces))
const asSeen = proxies.map(({ firstByteMs }) => median(firstByteMs) * 1_000)
console.log(row(['the first byte as the caller sees it', ...asSeen.map(micros), micros(asSeen[1] - asSeen[0])]))
for (const { child } of [...proxies, { child: vendor }]) await child.stop()
process.exit()

function print(title, handovers, notesOf) {
  console.log(`\n${row([`${title}, µs until …`, ...PROXIES, 'more'])}`)
  const ofProxies = proxies.map(({ notes }) =>
    notesOf(notes).filter((times) => handovers.every((name) => name in times)),
  )
  for (let step = 1; step < handovers.length; step++) {
    const spans = ofProxies.map((all) =>
      median(all.map((times) => times[handovers[step]] - times[handovers[step - 1]])),
    )
    line(handovers[step], spans)
  }
  const whole = ofProxies.map((all) => median(all.map((times) => times[handovers.at(-1)] - times[handovers[0]])))
  line('all together', whole)
}

function line(name, [bareMs, gatewayMs]) {
  console.log(row([name, micros(bareMs * 1_000), micros(gatewayMs * 1_000), micros((gatewayMs - bareMs) * 1_000)]))
}

function row([name, ...figures]) {
  return `${name.padEnd(46)}${figures.map((figure) => String(figure).padStart(9)).join('')}`
}

function micros(value) {
  return value.toFixed(0)
}

function median(values) {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

/** Sends one stream and reads all of it. */
function stream({ child, agent, firstByteMs }, body) {
  return new Promise((resolve, reject) => {
    const startedAtMs = performance.now()
    const sent = request({
      port: child.ready.port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/v1/chat/completions',
      agent,
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`))
      response.once('data', () => firstByteMs.push(performance.now() - startedAtMs))
      response.on('data', () => {})
      response.on('end', resolve)
    })
    sent.end(body)
  })
}
