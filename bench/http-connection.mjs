import { Buffer } from 'node:buffer'
import net from 'node:net'

const HEAD_END = '\r\n\r\n'
const CARRIAGE_RETURN = 13
const LINE_FEED = 10

/** Whether the status of an answer is a success. */
export const isSuccess = ({ status }) => status >= 200 && status < 300

/**
 * One kept-alive HTTP/1.1 connection that sends prepared requests, and reads only the parts of answers that a load driver
 * needs: status, size, time of the first byte of the body, and the end. It needs much less CPU time than an HTTP client, because driver and
 * mock vendor share a core.
 */
export class HttpConnection {
  #socket
  #onAnswer
  #pending
  #mode = 'idle'
  #remaining = 0
  #answer

  /** `onAnswer` gets each answer, with a `fault` if the connection ends in the middle of it. */
  constructor(port, onAnswer) {
    this.#onAnswer = onAnswer
    this.#socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('data', (bytes) => this.#read(bytes))
    this.#socket.on('error', (error) => this.#fail(error.message))
    this.#socket.on('close', () => this.#fail('the connection was closed'))
  }

  get connected() {
    return new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve)
      this.#socket.once('error', reject)
    })
  }

  /** Whether a request can be sent: the server closes connections without requests. */
  get isOpen() {
    return this.#mode !== 'closed'
  }

  /** Sends a whole request. With `keep`, the answer holds its head and body. */
  send(request, { keep = false, onFirstByte } = {}) {
    this.#mode = 'head'
    this.#answer = {
      status: 0,
      bodyBytes: 0,
      startedAtMs: performance.now(),
      firstByteMs: undefined,
      durationMs: 0,
      head: '',
      parts: keep ? [] : undefined,
      fault: undefined,
      onFirstByte,
    }
    this.#socket.write(request)
  }

  close() {
    this.#mode = 'closed'
    this.#socket.destroy()
  }

  #read(bytes) {
    let rest = this.#pending === undefined ? bytes : Buffer.concat([this.#pending, bytes])
    this.#pending = undefined
    while (rest.byteLength > 0) {
      const used = this.#step(rest)
      if (used === 0) {
        this.#pending = rest
        return
      }
      rest = rest.subarray(used)
    }
  }

  /** Consumes bytes from the front and returns their number; 0 if more bytes are needed first. */
  #step(bytes) {
    if (this.#mode === 'head') return this.#readHead(bytes)
    if (this.#mode === 'body') return this.#readBody(bytes)
    if (this.#mode === 'size') return this.#readChunkSize(bytes)
    if (this.#mode === 'data') return this.#readChunkData(bytes)
    return bytes.byteLength
  }

  #readHead(bytes) {
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) return 0
    const head = bytes.latin1Slice(0, end)
    this.#answer.status = Number(head.slice(9, 12))
    if (this.#answer.parts !== undefined) this.#answer.head = head
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.#remaining = Number(length ?? 0)
    this.#mode = length === undefined ? 'size' : 'body'
    if (this.#mode === 'body' && this.#remaining === 0) this.#finish()
    return end + HEAD_END.length
  }

  #readBody(bytes) {
    const size = Math.min(this.#remaining, bytes.byteLength)
    this.#take(bytes, size)
    this.#remaining -= size
    if (this.#remaining === 0) this.#finish()
    return size
  }

  #readChunkSize(bytes) {
    const end = bytes.indexOf(LINE_FEED)
    if (end < 1 || bytes[end - 1] !== CARRIAGE_RETURN) return 0
    const size = Number.parseInt(bytes.latin1Slice(0, end - 1), 16)
    if (size > 0) {
      this.#remaining = size + 2
      this.#mode = 'data'
      return end + 1
    }
    if (bytes.byteLength < end + 3) return 0
    this.#finish()
    return end + 3
  }

  /** Reads the data of a chunk and the line end after it. */
  #readChunkData(bytes) {
    const size = Math.min(this.#remaining, bytes.byteLength)
    this.#take(bytes, Math.min(size, Math.max(0, this.#remaining - 2)))
    this.#remaining -= size
    if (this.#remaining === 0) this.#mode = 'size'
    return size
  }

  #take(bytes, size) {
    if (size === 0) return
    const answer = this.#answer
    answer.bodyBytes += size
    answer.parts?.push(bytes.subarray(0, size))
    if (answer.firstByteMs !== undefined) return
    answer.firstByteMs = performance.now() - answer.startedAtMs
    answer.onFirstByte?.()
  }

  #finish() {
    const answer = this.#answer
    this.#mode = 'idle'
    answer.durationMs = performance.now() - answer.startedAtMs
    this.#onAnswer(answer, this)
  }

  #fail(fault) {
    const isUnderWay = this.#mode !== 'idle' && this.#mode !== 'closed'
    this.#mode = 'closed'
    if (!isUnderWay) return
    this.#answer.fault = fault
    this.#onAnswer(this.#answer, this)
  }
}
