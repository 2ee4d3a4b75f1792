import { Buffer } from 'node:buffer'
import net from 'node:net'
import { answerQuestions } from './child-process.mjs'
import {
  chatAnswer,
  chatEvents,
  embeddingsAnswer,
  imageEditAnswer,
  messageAnswer,
  messagesEvents,
  responseAnswer,
  responsesEvents,
  STREAM_END,
  STREAM_HEAD,
  videoReceipt,
} from './vendor-answers.mjs'

/**
 * A vendor that needs very little CPU time, so that the proxy's own work is measured: it has sockets without Node's HTTP
 * server, and answers whose bytes are created once. The name of the model selects the kind of answer:
 * `burst` all events in one write · `paced` one write every 20 ms · `brief` ten events, 10 ms apart · `slow` an event every
 * 2 s, without end · `held` an image edit that is answered when the lab says so · anything else one JSON answer.
 */

const PACES = {
  paced: { intervalMs: 20, events: chatEvents('gpt-bench-paced'), together: 2 },
  brief: { intervalMs: 10, events: chatEvents('gpt-bench-brief', 10), together: 2 },
}
/** Three events come before the first text. */
const MESSAGES_PACE = { intervalMs: 20, events: messagesEvents('claude-bench-paced'), together: 4 }
const SLOW_INTERVAL_MS = 2_000
const SLOW_EVENTS = chatEvents('gpt-bench-slow').slice(0, 2)

const BURST = Buffer.concat([STREAM_HEAD, ...chatEvents('gpt-bench-burst'), STREAM_END])
const MESSAGES_BURST = Buffer.concat([STREAM_HEAD, ...messagesEvents('claude-bench-burst'), STREAM_END])
const RESPONSES_BURST = Buffer.concat([STREAM_HEAD, ...responsesEvents('gpt-bench-burst'), STREAM_END])
const CHAT = chatAnswer('gpt-bench')
const RESPONSE = responseAnswer('gpt-bench')
const MESSAGE = messageAnswer('claude-bench')
const EMBEDDINGS = embeddingsAnswer('embedding-bench')
const IMAGE_EDIT = imageEditAnswer()

/** Connections whose edit waits for `beginHeld` and `endHeld`. */
const held = []
let videos = 0

function answer(socket, path, body) {
  if (path.endsWith('/embeddings')) return socket.write(EMBEDDINGS)
  if (path.endsWith('/images/edits')) return body.includes('-held\r\n') ? held.push(socket) : socket.write(IMAGE_EDIT)
  if (path.endsWith('/videos/generations') || path.endsWith('/video-synthesis')) {
    videos += 1
    return socket.write(videoReceipt(videos))
  }
  const manner = /"model":\s*"[^"]*-(burst|paced|brief|slow)"/.exec(body)?.[1]
  if (path.endsWith('/messages')) {
    if (manner === 'paced') return pace(socket, MESSAGES_PACE)
    return socket.write(manner === 'burst' ? MESSAGES_BURST : MESSAGE)
  }
  if (path.endsWith('/responses')) return socket.write(manner === 'burst' ? RESPONSES_BURST : RESPONSE)
  if (manner === undefined) return socket.write(CHAT)
  if (manner === 'burst') return socket.write(BURST)
  if (manner === 'slow') return drip(socket)
  pace(socket, PACES[manner])
}

/**
 * One write per event. The head, the events before the first text, and that text are sent immediately and together, so that a
 * gateway that waits for content before it commits to this vendor does not appear slower by the vendor's own pause.
 */
function pace(socket, { intervalMs, events, together }) {
  socket.write(Buffer.concat([STREAM_HEAD, ...events.slice(0, together)]))
  let next = together
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

/** Number of bytes of a request that are read as text: the model is at the beginning of all bodies. */
const READ_BYTES = 4_096

/** Reads requests from a connection, one after the other. Large bodies are counted, not joined. */
function serve(socket) {
  let chunks = []
  let byteLength = 0
  let head
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    chunks.push(chunk)
    byteLength += chunk.byteLength
    head ??= readHead(chunks)
    if (head === undefined) return
    const { path, bodyStart, bodyBytes } = head
    const isWhole = bodyBytes === undefined ? endOf(chunks).equals(STREAM_END) : byteLength >= bodyStart + bodyBytes
    if (!isWhole) return
    const front = joined(chunks, Math.min(byteLength, READ_BYTES)).subarray(bodyStart, READ_BYTES).latin1Slice()
    chunks = []
    byteLength = 0
    head = undefined
    answer(socket, path, front)
  })
}

/** Path and size of a request; undefined until its head is complete. `bodyBytes` is undefined for a chunked body. */
function readHead(chunks) {
  const bytes = joined(chunks)
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.latin1Slice(0, end)
  const isChunked = /\r\ntransfer-encoding: *chunked/i.test(head)
  const bodyBytes = isChunked ? undefined : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  return { path: head.split(' ', 2)[1], bodyStart: end + 4, bodyBytes }
}

/** The last bytes, as many as the end mark of a chunked body has; no chunk is empty. */
function endOf(chunks) {
  return joined(chunks.slice(-STREAM_END.byteLength)).subarray(-STREAM_END.byteLength)
}

/** The first `size` bytes, or all. */
function joined(chunks, size) {
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size)
}

const server = net.createServer(serve).listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  answerQuestions(
    { port: server.address().port },
    {
      heldCount: () => held.length,
      /** Sends all answers without their last byte; resolves when the bytes have been written. */
      beginHeld: async () => {
        await Promise.all(
          held.map((socket) => new Promise((sent) => socket.write(IMAGE_EDIT.subarray(0, -1), () => sent()))),
        )
      },
      endHeld: () => {
        for (const socket of held.splice(0)) socket.write(IMAGE_EDIT.subarray(-1))
      },
    },
  )
})
