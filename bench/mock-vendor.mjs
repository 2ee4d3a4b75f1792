import { Buffer } from 'node:buffer'
import net from 'node:net'
import { answerQuestions } from './child-process.mjs'
import {
  chatAnswer,
  chatEvents,
  embeddingsAnswer,
  messageAnswer,
  messagesEvents,
  STREAM_END,
  STREAM_HEAD,
} from './vendor-answers.mjs'

/**
 * A vendor that costs next to nothing, so that a proxy's own work is what is measured: sockets without Node's HTTP server,
 * and answers whose bytes are made once. The manner of the answer is in the name of the model:
 * `burst` all events in one write · `paced` one write every 20 ms · `brief` ten events, 10 ms apart · `slow` an event every
 * 2 s, without end · anything else one JSON answer.
 */

const PACES = {
  paced: { intervalMs: 20, events: chatEvents('gpt-bench-paced') },
  brief: { intervalMs: 10, events: chatEvents('gpt-bench-brief', 10) },
}
const SLOW_INTERVAL_MS = 2_000
const SLOW_EVENTS = chatEvents('gpt-bench-slow').slice(0, 2)

const BURST = Buffer.concat([STREAM_HEAD, ...chatEvents('gpt-bench-burst'), STREAM_END])
const MESSAGES_BURST = Buffer.concat([STREAM_HEAD, ...messagesEvents('claude-bench-burst'), STREAM_END])
const CHAT = chatAnswer('gpt-bench')
const MESSAGE = messageAnswer('claude-bench')
const EMBEDDINGS = embeddingsAnswer('embedding-bench')

function answer(socket, path, body) {
  if (path.endsWith('/embeddings')) return socket.write(EMBEDDINGS)
  const manner = /"model":\s*"[^"]*-(burst|paced|brief|slow)"/.exec(body)?.[1]
  if (path.endsWith('/messages')) return socket.write(manner === 'burst' ? MESSAGES_BURST : MESSAGE)
  if (manner === undefined) return socket.write(CHAT)
  if (manner === 'burst') return socket.write(BURST)
  if (manner === 'slow') return drip(socket)
  pace(socket, PACES[manner])
}

/**
 * One write per event. The head, the event that only names the role, and the first text go out at once and together: a gateway
 * that waits for content before it commits itself to this vendor is not to be charged with the vendor's own pause.
 */
function pace(socket, { intervalMs, events }) {
  socket.write(Buffer.concat([STREAM_HEAD, events[0], events[1]]))
  let next = 2
  const stop = () => {
    clearInterval(timer)
    socket.off('close', stop)
  }
  const timer = setInterval(() => {
    socket.write(events[next])
    next += 1
    if (next < events.length) return
    stop()
    socket.write(STREAM_END)
  }, intervalMs)
  socket.on('close', stop)
}

function drip(socket) {
  socket.write(Buffer.concat([STREAM_HEAD, ...SLOW_EVENTS]))
  const timer = setInterval(() => socket.write(SLOW_EVENTS[1]), SLOW_INTERVAL_MS)
  socket.once('close', () => clearInterval(timer))
}

/** Reads requests from a connection, one after the other. */
function serve(socket) {
  let kept
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    kept = kept === undefined ? chunk : Buffer.concat([kept, chunk])
    const headEnd = kept.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = kept.latin1Slice(0, headEnd)
    const bodyStart = headEnd + 4
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const isWhole =
      length === undefined
        ? !/\r\ntransfer-encoding: *chunked/i.test(head) || kept.subarray(-5).equals(STREAM_END)
        : kept.byteLength >= bodyStart + Number(length)
    if (!isWhole) return
    const body = kept.latin1Slice(bodyStart)
    kept = undefined
    answer(socket, head.split(' ', 2)[1], body)
  })
}

const server = net.createServer(serve).listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  answerQuestions({ port: server.address().port }, {})
})
