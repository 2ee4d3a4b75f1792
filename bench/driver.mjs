import { Buffer } from 'node:buffer'
import { answerQuestions } from './child-process.mjs'
import { HttpConnection, isSuccess } from './http-connection.mjs'
import { quantile } from './statistics.mjs'

let connections = []
let onAnswer = () => {}

/** Opens connections before the measurement, so that it does not include this work. */
async function open({ port, count }) {
  connections = Array.from({ length: count }, () => new HttpConnection(port, (...given) => onAnswer(...given)))
  await Promise.all(connections.map((connection) => connection.connected))
}

function close() {
  for (const connection of connections) connection.close()
  connections = []
}

/**
 * Sends requests on every open connection, one after the other and all of them in turn, until `durationMs` has passed or each
 * connection has sent `answersPerConnection`; then waits for requests in flight. `spreadMs` is the time over which the starts are spread.
 */
function run({ requests, durationMs, answersPerConnection, spreadMs = 0, expectedBytes }) {
  const each = requests.map((request) => Buffer.from(request))
  let sent = 0
  const answersLeft = new Map(connections.map((connection) => [connection, answersPerConnection]))
  const durations = []
  const firstBytes = []
  const faults = new Map()
  let active = connections.length
  const beganAt = performance.now()
  const deadline = durationMs === undefined ? Number.POSITIVE_INFINITY : beganAt + durationMs

  return new Promise((resolve) => {
    const next = (connection) => {
      const left = answersLeft.get(connection)
      if (left > 0 && performance.now() < deadline) {
        answersLeft.set(connection, left - 1)
        connection.send(each[sent % each.length])
        sent += 1
        return
      }
      active -= 1
      if (active === 0) resolve(summary())
    }
    const summary = () => ({
      answers: durations.length,
      faults: [...faults].map(([fault, count]) => `${count} × ${fault}`),
      elapsedMs: performance.now() - beganAt,
      p50Ms: quantile(durations, 0.5),
      p99Ms: quantile(durations, 0.99),
      firstByteP50Ms: quantile(firstBytes, 0.5),
    })
    onAnswer = (answer, connection) => {
      const fault = faultOf(answer, expectedBytes)
      if (fault !== undefined) faults.set(fault, (faults.get(fault) ?? 0) + 1)
      durations.push(answer.durationMs)
      firstBytes.push(answer.firstByteMs)
      if (answer.fault === undefined) next(connection)
      else {
        active -= 1
        if (active === 0) resolve(summary())
      }
    }
    if (spreadMs === 0) for (const connection of connections) next(connection)
    else begin(connections, spreadMs, next)
  })
}

/** Starts a few connections every millisecond. */
function begin(waiting, spreadMs, next) {
  const perStep = Math.ceil(waiting.length / spreadMs)
  let begun = 0
  const timer = setInterval(() => {
    for (const connection of waiting.slice(begun, begun + perStep)) next(connection)
    begun += perStep
    if (begun >= waiting.length) clearInterval(timer)
  }, 1)
}

function faultOf(answer, expectedBytes) {
  if (answer.fault !== undefined) return answer.fault
  if (!isSuccess(answer)) return `status ${answer.status}`
  return answer.bodyBytes === expectedBytes ? undefined : `${answer.bodyBytes} bytes instead of ${expectedBytes}`
}

/** Starts an endless answer on every open connection; resolves when all of them have received their first byte. */
function openStreams({ request }) {
  const bytes = Buffer.from(request)
  let waiting = connections.length
  return new Promise((resolve, reject) => {
    onAnswer = ({ fault, status }) => reject(new Error(`a stream ended: ${fault ?? `status ${status}`}`))
    const onFirstByte = () => {
      waiting -= 1
      if (waiting === 0) resolve({ streams: connections.length })
    }
    begin(connections, connections.length / 2, (connection) => connection.send(bytes, { onFirstByte }))
  })
}

/** Sends one request on a new connection and returns the whole answer. */
function fetchWhole({ port, request }) {
  return new Promise((resolve, reject) => {
    const connection = new HttpConnection(port, ({ status, head, parts, bodyBytes, fault }) => {
      connection.close()
      if (fault === undefined) resolve({ status, head, body: Buffer.concat(parts).toString(), bodyBytes })
      else reject(new Error(fault))
    })
    connection.send(request, { keep: true })
  })
}

answerQuestions({}, { open, close, run, openStreams, fetchWhole })
