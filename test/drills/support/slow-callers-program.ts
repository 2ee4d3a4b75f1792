import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import { TEST_KEY } from '../../support/start-gateway.ts'

/** Commands to the slow callers. */
export type SlowCallersOrder =
  | { readonly order: 'open'; readonly url: string; readonly readers: number; readonly writers: number }
  | { readonly order: 'measure' }
  | { readonly order: 'leave' }

/** Measurements of the slow callers. */
export interface SlowCallersMeasures {
  /** Readers whose answer has begun. */
  readonly begun: number
  /** Bytes that the vendor could get rid of, for each reader. */
  readonly meanWrittenBytes: number
  /** Answers that the vendor could send whole. */
  readonly sentWhole: number
  /** Connections of readers and writers that the other side has closed, and what it said before. */
  readonly closed: number
  readonly statuses: Readonly<Record<string, number>>
}

/**
 * A thousand callers that hardly read or hardly write, and the vendor of the answers that they do not read, in a process of
 * its own.
 */
const ANSWER_BYTES = 64 * 1024 * 1024
const EVENT = `data: ${JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'up',
  choices: [{ index: 0, delta: { content: 'x'.repeat(8 * 1024) }, finish_reason: null }],
})}\n\n`
const CHUNK = Buffer.from(`${Buffer.byteLength(EVENT).toString(16)}\r\n${EVENT}\r\n`)
/** Between two bytes that a slow caller reads or writes. */
const BYTE_EVERY_MS = 500

const written = new Map<Socket, number>()
let sentWhole = 0
const callers: Socket[] = []
let begun = 0
let closed = 0
const statuses: Record<string, number> = {}

const vendor = createServer((socket) => {
  socket.on('error', () => socket.destroy())
  socket.once('data', () => {
    written.set(socket, 0)
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
    const write = (): void => {
      let bytes = written.get(socket) ?? 0
      let hasRoom = true
      while (hasRoom && bytes < ANSWER_BYTES && !socket.destroyed) {
        hasRoom = socket.write(CHUNK)
        bytes += CHUNK.byteLength
      }
      written.set(socket, bytes)
      if (bytes >= ANSWER_BYTES) sentWhole += 1
    }
    socket.on('drain', write)
    write()
  })
})

function openCaller(url: string): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  socket.on('error', () => undefined)
  socket.once('close', () => {
    closed += 1
  })
  callers.push(socket)
  return socket
}

function headOf(path: string, bodyBytes: number): string {
  return (
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${TEST_KEY}\r\n` +
    `content-type: application/json\r\ncontent-length: ${bodyBytes}\r\n\r\n`
  )
}

/** Begins a stream; every second one reads a byte now and then, the others nothing after the first bytes. */
function openReader(url: string, index: number): void {
  const body = JSON.stringify({
    model: 'chat-large',
    stream: true,
    max_tokens: 50,
    messages: [{ role: 'user', content: 'much' }],
  })
  const socket = openCaller(url)
  socket.write(headOf('/v1/chat/completions', body.length) + body)
  socket.once('readable', () => {
    begun += 1
    const status = (socket.read(12) as Buffer | null)?.toString('latin1').slice(9)
    statuses[`reader ${status}`] = (statuses[`reader ${status}`] ?? 0) + 1
    if (index % 2 === 1) return
    const timer = setInterval(() => socket.read(1), BYTE_EVERY_MS)
    socket.once('close', () => clearInterval(timer))
  })
}

/** Sends a byte now and then; every second one of the body, the others of the head. */
function openWriter(url: string, index: number): void {
  const head = headOf('/v1/chat/completions', 100_000)
  const socket = openCaller(url)
  const isSlowInBody = index % 2 === 0
  let rest = isSlowInBody ? '{"model":"chat-quick","messages":[' : head.slice(20)
  socket.write(isSlowInBody ? head : head.slice(0, 20))
  const timer = setInterval(() => {
    socket.write(rest.slice(0, 1) || ' ')
    rest = rest.slice(1)
  }, BYTE_EVERY_MS)
  socket.once('data', (bytes) => {
    const status = bytes.toString('latin1').slice(9, 12)
    statuses[`writer ${status}`] = (statuses[`writer ${status}`] ?? 0) + 1
  })
  socket.once('close', () => clearInterval(timer))
}

function measures(): SlowCallersMeasures {
  const bytes = [...written.values()].reduce((sum, count) => sum + count, 0)
  return { begun, meanWrittenBytes: bytes / Math.max(1, written.size), sentWhole, closed, statuses }
}

process.on('message', (words: SlowCallersOrder) => {
  if (words.order === 'open') {
    for (let index = 0; index < words.readers; index++) openReader(words.url, index)
    for (let index = 0; index < words.writers; index++) openWriter(words.url, index)
  }
  if (words.order === 'leave') for (const socket of callers) socket.destroy()
  process.send?.(measures())
})
process.on('disconnect', () => process.exit(0))
vendor.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  process.send?.({ origin: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}` })
})
