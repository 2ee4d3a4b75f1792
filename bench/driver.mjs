import { Buffer } from 'node:buffer'
import { answerQuestions } from './child-process.mjs'
import { HttpConnection, isSuccess } from './http-connection.mjs'
import { quantile } from './statistics.mjs'

/** Maximum number of requests in flight at a fixed rate. A proxy with more does not keep up. */
const MAX_IN_FLIGHT = 1_000

let connections = []
let onAnswer = () => {}

/** Opens connections before the measurement, so that it does not include this work. */
async function open({ port, count }) {
  connections = Array.from({ length: count }, () => connectionTo(port))
  await Promise.all(connections.map((connection) => connection.connected))
}

function connectionTo(port) {
  return new HttpConnection(port, (...given) => onAnswer(...given))
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
  const tally = startTally(expectedBytes)
  let active = connections.length
  const deadline = durationMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + durationMs

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
      if (active === 0) resolve(tally.summary())
    }
    onAnswer = (answer, connection) => {
      tally.add(answer)
      if (answer.fault === undefined) next(connection)
      else {
        active -= 1
        if (active === 0) resolve(tally.summary())
      }
    }
    if (spreadMs === 0) for (const connection of connections) next(connection)
    else begin(connections, spreadMs, next)
  })
}

/**
 * Sends `perSecond` requests at equal intervals until `durationMs` has passed, whether or not earlier ones have been answered, then waits for
 * requests in flight. Each duration begins at the scheduled time, so a delayed request counts with its delay. Opens another connection if all
 * are in use.
 */
function runAtRate({ port, requests, perSecond, durationMs, expectedBytes }) {
  const each = requests.map((request) => Buffer.from(request))
  const count = Math.max(1, Math.round((perSecond * durationMs) / 1_000))
  const tally = startTally(expectedBytes)
  const idle = [...connections]
  const scheduled = new Map()
  const beganAt = performance.now()
  const timeOf = (index) => beganAt + (index * 1_000) / perSecond
  let sent = 0
  let answered = 0

  const freeConnection = () => {
    while (idle.length > 0) {
      const connection = idle.shift()
      if (connection.isOpen) return connection
    }
    const another = connectionTo(port)
    connections.push(another)
    return another
  }
  return new Promise((resolve, reject) => {
    onAnswer = (answer, connection) => {
      tally.add(answer, answer.startedAtMs - scheduled.get(connection))
      answered += 1
      if (answer.fault === undefined) idle.push(connection)
      if (answered === count) resolve(tally.summary())
    }
    const sendDue = () => {
      for (; sent < count && timeOf(sent) <= performance.now(); sent++) {
        if (sent - answered === MAX_IN_FLIGHT)
          return reject(new Error(`${MAX_IN_FLIGHT} requests are unanswered at ${perSecond} per second`))
        const connection = freeConnection()
        scheduled.set(connection, timeOf(sent))
        connection.send(each[sent % each.length])
      }
      if (sent < count) setTimeout(sendDue, timeOf(sent) - performance.now())
    }
    sendDue()
  })
}

/** Collects the answers of a run. */
function startTally(expectedBytes) {
  const durations = []
  const firstBytes = []
  const faults = new Map()
  const beganAt = performance.now()
  return {
    /** `delayMs`: time between the scheduled and the actual start of the request. */
    add(answer, delayMs = 0) {
      const fault = faultOf(answer, expectedBytes)
      if (fault !== undefined) faults.set(fault, (faults.get(fault) ?? 0) + 1)
      durations.push(answer.durationMs + delayMs)
      firstBytes.push(answer.firstByteMs === undefined ? undefined : answer.firstByteMs + delayMs)
    },
    summary: () => ({
      answers: durations.length,
      faults: [...faults].map(([fault, count]) => `${count} × ${fault}`),
      elapsedMs: performance.now() - beganAt,
      p50Ms: quantile(durations, 0.5),
      p99Ms: quantile(durations, 0.99),
      firstByteP50Ms: quantile(firstBytes, 0.5),
    }),
  }
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

answerQuestions({}, { open, close, run, runAtRate, openStreams, fetchWhole })
