import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Clock, Timer } from '../../core/clock.ts'
import { parseVendorJson } from '../../core/json.ts'
import { credentialIdOf } from '../../routing/candidate.ts'
import {
  isStreamedBody,
  type StreamedBody,
  type TransportControl,
  type TransportFailure,
  type TransportHandler,
  type TransportRequest,
} from '../../transport/transport.ts'
import { type Fault, type FaultQueue, faultOf } from './fault.ts'
import { OPENAI_ERRORS } from './openai/openai.ts'
import { asObject, asText, names } from './request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  fileReply,
  type IncomingCall,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  type VendorErrors,
} from './sandbox-operation.ts'
import {
  type CallReceiver,
  deliverySteps,
  type ReplyQueue,
  type ScriptedReply,
  type VendorConnection,
} from './scripted-reply.ts'

/** Creates a transport that passes every call, for any origin, to `receive`. Applies both timeouts of the contract. */
export function memoryTransport(receive: CallReceiver, clock: Clock) {
  const open = new Set<MemoryCall>()
  let whenIdle: (() => void)[] = []
  const ended = (call: MemoryCall): void => {
    open.delete(call)
    if (open.size > 0) return
    for (const callback of whenIdle) callback()
    whenIdle = []
  }
  return {
    /** Number of running calls. */
    get open(): number {
      return open.size
    },
    /** Breaks all running calls. */
    resetAll(): void {
      for (const call of [...open]) call.reset()
    },
    send(request: TransportRequest, handler: TransportHandler): TransportControl {
      const call = new MemoryCall(request, handler, clock, ended)
      open.add(call)
      // A later turn: callbacks must not run before this method has returned.
      setImmediate(() => call.begin(receive))
      return call
    },
    close: (): Promise<void> =>
      open.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve)),
  }
}

/** One call in process, seen from both ends: the gateway's control of it and the vendor's connection. */
class MemoryCall implements TransportControl, VendorConnection {
  closed = false
  readonly #request: TransportRequest
  readonly #handler: TransportHandler
  readonly #clock: Clock
  readonly #onEnded: (call: MemoryCall) => void
  #waiting: Uint8Array[] = []
  #isPaused = false
  #isFull = false
  #hasHead = false
  #ending: 'end' | 'reset' | undefined
  #isOver = false
  #timer: Timer | undefined
  #drain: (() => void) | undefined
  #onDisconnect: (() => void) | undefined

  constructor(request: TransportRequest, handler: TransportHandler, clock: Clock, onEnded: (call: MemoryCall) => void) {
    this.#request = request
    this.#handler = handler
    this.#clock = clock
    this.#onEnded = onEnded
  }

  begin(receive: CallReceiver): void {
    if (this.closed) return
    this.#watch()
    const { body } = this.#request
    if (!isStreamedBody(body)) {
      receive(incomingCall(this.#request, bytesOf(body)), this)
      return
    }
    readWhole(body).then(
      (bytes) => {
        if (!this.closed) receive(incomingCall(this.#request, bytes), this)
      },
      (error: unknown) => this.#failBody(error as Error),
    )
  }

  abort(): void {
    this.#failWith('aborted', 'the call was aborted')
  }

  pause(): void {
    this.#isPaused = true
    this.#timer?.cancel()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    // A later turn: the contract's callbacks never run inside a call of the control.
    queueMicrotask(() => {
      this.#flush()
      if (!this.#isFull || this.#waiting.length > 0 || this.closed) return
      this.#isFull = false
      this.#drain?.()
    })
  }

  head(status: number, headers: readonly string[]): void {
    if (this.closed) return
    this.#hasHead = true
    this.#watch()
    this.#handler.onHead(status, headerMap(headers))
  }

  write(bytes: Uint8Array): boolean {
    if (this.closed) return false
    this.#waiting.push(bytes)
    this.#flush()
    this.#isFull = this.#waiting.length > 0
    return !this.#isFull && !this.closed
  }

  end(): void {
    this.#close('end')
  }

  reset(): void {
    this.#close('reset')
  }

  #close(ending: 'end' | 'reset'): void {
    if (this.closed) return
    this.closed = true
    this.#ending = ending
    this.#flush()
  }

  refuse(): void {
    if (this.closed) return
    this.closed = true
    this.#fail({ phase: 'connect', kind: 'refused', error: new Error('the connection was refused') })
  }

  onDrain(listener: () => void): void {
    this.#drain = listener
  }

  onDisconnect(listener: () => void): void {
    this.#onDisconnect = listener
  }

  /** Delivers waiting chunks as long as the caller accepts them. */
  #flush(): void {
    while (!this.#isPaused && !this.#isOver && this.#waiting.length > 0) {
      this.#watch()
      this.#handler.onData(this.#waiting.shift() as Uint8Array)
    }
    if (this.#isPaused || this.#isOver) return
    if (this.#ending === 'end') {
      this.#finish()
      this.#handler.onEnd()
    } else if (this.#ending === 'reset') {
      this.#fail({ phase: this.#phase(), kind: 'reset', error: new Error('the connection was reset') })
    }
  }

  /** Restarts the timeout of the current phase. */
  #watch(): void {
    this.#timer?.cancel()
    const limitMs = this.#hasHead ? this.#request.idleTimeoutMs : this.#request.firstByteTimeoutMs
    this.#timer = this.#clock.schedule(limitMs, () => this.#failWith('timeout', `nothing came within ${limitMs} ms`))
  }

  #failWith(kind: 'aborted' | 'timeout', text: string): void {
    if (this.#isOver) return
    const vendorWasBusy = !this.closed
    this.closed = true
    this.#isOver = true
    this.#waiting = []
    this.#timer?.cancel()
    if (vendorWasBusy) this.#onDisconnect?.()
    queueMicrotask(() => {
      this.#onEnded(this)
      this.#handler.onFailure({ phase: this.#phase(), kind, error: new Error(text) })
    })
  }

  #failBody(error: Error): void {
    if (this.closed) return
    this.closed = true
    this.#fail({ phase: 'sent', kind: 'protocol', error })
  }

  #fail(failure: TransportFailure): void {
    this.#finish()
    this.#handler.onFailure(failure)
  }

  #finish(): void {
    this.#isOver = true
    this.#timer?.cancel()
    this.#onEnded(this)
  }

  #phase(): 'sent' | 'body' {
    return this.#hasHead ? 'body' : 'sent'
  }
}

function incomingCall(request: TransportRequest, bytes: Uint8Array): IncomingCall {
  const [path, query] = split(request.path)
  const headers: Record<string, string> = {}
  for (let position = 0; position + 1 < request.headers.length; position += 2) {
    const name = (request.headers[position] ?? '').toLowerCase()
    const value = request.headers[position + 1] ?? ''
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return { method: request.method, path, query, headers, bytes }
}

async function readWhole({ byteLength, content }: StreamedBody): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of content) pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  if (bytes.byteLength === byteLength) return bytes
  throw new Error(`the body has ${bytes.byteLength} bytes, not ${byteLength}`)
}

function bytesOf(body: Exclude<TransportRequest['body'], StreamedBody>): Uint8Array {
  if (body === null) return new Uint8Array(0)
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body)
  return Buffer.concat(body)
}

function split(path: string): [string, string] {
  const mark = path.indexOf('?')
  return mark === -1 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)]
}

function headerMap(headers: readonly string[]): Record<string, string | string[]> {
  const map: Record<string, string | string[]> = {}
  for (let position = 0; position + 1 < headers.length; position += 2) {
    const name = headers[position] ?? ''
    const value = headers[position + 1] ?? ''
    const earlier = map[name]
    map[name] = earlier === undefined ? value : [...(typeof earlier === 'string' ? [earlier] : earlier), value]
  }
  return map
}

/** The input of an operation's answer. */
interface AnswerSources {
  readonly operations: readonly SandboxOperation[]
  readonly faults: FaultQueue
  readonly replies: ReplyQueue
  readonly eventDelayMs: number
  now(): number
}

/** Finds the operation of a call and computes its answer. Pure except for the faults and replies that it takes from the queues. */
export function answeredCall(incoming: IncomingCall, sources: AnswerSources) {
  const { call, reply, faults } = repliedCall(incoming, sources)
  return { call, steps: deliverySteps(reply, faults, sources.eventDelayMs) }
}

/** Faults that leave no answer for the vendor to store. */
const LOST = names('refuse reset hang hang-body reset-mid-stream end-early half-json endless')

/**
 * Answers a request of a batch like a single call. If a fault would break the delivery, or makes the answer unreadable, the request
 * fails with 500. Returns the call, and the status and the JSON of the answer that the vendor stores.
 */
export function batchedAnswer(batchId: string, incoming: IncomingCall, sources: AnswerSources) {
  const { call, reply, faults, errors } = repliedCall(incoming, sources, batchId)
  const isKept = !reply.streamed && !faults.some(({ kind }) => LOST.has(kind))
  const body = isKept ? jsonOf(reply) : undefined
  if (body !== undefined) return { call, status: reply.status, body }
  const failed = errors.status(500)
  return { call, status: failed.status, body: jsonOf(failed) }
}

function jsonOf({ pieces }: SandboxReply): unknown {
  return parseVendorJson(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString('utf8'))
}

/** Finds the operation of a call, and computes its answer before any fault of its delivery. */
function repliedCall(incoming: IncomingCall, sources: AnswerSources, batchId?: string) {
  const json = Buffer.from(incoming.bytes).toString('utf8')
  const body = json === '' ? undefined : parseVendorJson(json)
  const operation = sources.operations.find((candidate) => candidate.matches({ ...incoming, body }))
  const { vendor, operation: name } = operation ?? { vendor: 'unknown', operation: 'unknown' }
  const call: SandboxCall = {
    ...incoming,
    body,
    vendor,
    operation: name,
    model: modelOf(incoming, body),
    credentialId: credentialIdFor(vendor, incoming),
    ...(batchId === undefined ? {} : { batchId }),
  }
  if (operation === undefined) {
    const message = `Invalid URL (${incoming.method} ${incoming.path})`
    const error = { message, type: 'invalid_request_error', param: null, code: null }
    return { call, reply: jsonReply(404, [], { error }), faults: [], errors: OPENAI_ERRORS }
  }
  const text = operation.promptText(body, incoming)
  const script = sources.replies.take(call, text)
  const faults = sources.faults.take(vendor, name, text)
  if (script?.afterMs !== undefined) faults.push({ kind: 'delay', delayMs: script.afterMs })
  const { errors } = operation
  const { error } = script ?? {}
  const reply =
    replacedReply(faults, call, errors) ??
    (error && errors.status(error.status, error.message, error.retryAfterSeconds)) ??
    ownReply(operation, call, contextOf(call, faults, script, sources.now()))
  return { call, reply: damagedReply(reply, faults, errors), faults, errors }
}

function ownReply(operation: SandboxOperation, call: SandboxCall, context: AnswerContext): SandboxReply {
  if (call.body === undefined && operation.needsJson !== false)
    return operation.errors.status(400, 'We could not parse the JSON body of your request.')
  try {
    return operation.answer(call, context)
  } catch (error) {
    if (error instanceof RefusedCall) return error.reply
    throw error
  }
}

function contextOf(
  call: SandboxCall,
  faults: readonly Fault[],
  script: ScriptedReply | undefined,
  nowMs: number,
): AnswerContext {
  const replacement = faultOf(faults, 'usage')
  const isLeftOut = faultOf(faults, 'no-usage') !== undefined
  return {
    nowMs,
    id: createHash('sha256').update(call.bytes).digest('hex').slice(0, 24),
    blocked: faultOf(faults, 'blocked') !== undefined || script?.finishReason === 'content_filter',
    script,
    usage: (report) =>
      isLeftOut ? undefined : replacement === undefined ? report : withNumbers(report, replacement.value),
  }
}

/** Returns a copy of the object in which every number is replaced by `value`. */
function withNumbers<Report extends object>(report: Report, value: unknown): Report {
  return JSON.parse(JSON.stringify(report), (_, member: unknown) =>
    typeof member === 'number' ? value : member,
  ) as Report
}

/** Returns the answer with which a fault replaces the vendor's own, if any. */
function replacedReply(faults: readonly Fault[], call: SandboxCall, errors: VendorErrors): SandboxReply | undefined {
  for (const fault of faults) {
    switch (fault.kind) {
      case 'unreadable':
        return errors.status(400, `The stand-in cannot read the fault mark ${fault.mark}.`)
      case 'status':
        return errors.status(fault.status, undefined, fault.retryAfterSeconds)
      case 'quota':
        return errors.quota()
      case 'bad-key':
        return errors.badKey()
      case 'leak-key':
        return errors.status(401, `The key ${credentialOf(call)} is not valid (sent as Bearer ${credentialOf(call)}).`)
      case 'html':
        return { ...fileReply('text/html', htmlPage(fault.status)), status: fault.status }
      case 'redirect': {
        const headers = ['location', fault.location ?? 'https://elsewhere.example/']
        return { status: 307, headers, pieces: [''], streamed: false }
      }
    }
  }
  return undefined
}

/** The vendor's answer with a fault applied, before it is sent. */
function damagedReply(reply: SandboxReply, faults: readonly Fault[], errors: VendorErrors): SandboxReply {
  if (reply.status !== 200) return reply
  if (faultOf(faults, 'empty') !== undefined) return { ...reply, pieces: [], streamed: false }
  if (faultOf(faults, 'garbage') !== undefined) {
    const noise = '\u0001\u0002}{ this is no JSON ][\u0000'
    return { ...reply, pieces: reply.streamed ? [`data: ${noise}\n\n`, `data: ${noise}\n\n`] : [noise] }
  }
  const errorEvent = faultOf(faults, 'error-event')
  if (errorEvent !== undefined) {
    if (!reply.streamed) return { ...reply, pieces: errors.status(500).pieces }
    return { ...reply, pieces: [...reply.pieces.slice(0, errorEvent.events ?? 1), errors.streamEvent()] }
  }
  if (faultOf(faults, 'no-done') !== undefined && reply.streamed) return { ...reply, pieces: reply.pieces.slice(0, -1) }
  return reply
}

function htmlPage(status: number): string {
  return `<html>\r\n<head><title>${status}</title></head>\r\n<body><h1>${status}</h1><hr>proxy</body>\r\n</html>\r\n`
}

const PATH_MODEL = /\/(?:models?|deployments|endpoints)\/([^/:]+)/
const FORM_MODEL = /name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)\r\n/
const MAX_HEAD_BYTES = 64 * 1024

/** Returns the model that a call names in its body, form or path, in the vendor's terms, or `undefined` if it names none. */
function modelOf(call: IncomingCall, body: unknown): string | undefined {
  const named = asText(asObject(body)['model'])
  if (named !== '') return named
  const inPath = PATH_MODEL.exec(call.path)?.[1]
  if (inPath !== undefined) return decodedOrAsIs(inPath)
  if (!(call.headers['content-type'] ?? '').startsWith('multipart/form-data')) return undefined
  const inForm = FORM_MODEL.exec(Buffer.from(call.bytes.subarray(0, MAX_HEAD_BYTES)).toString('latin1'))?.[1]
  return inForm ?? FORM_MODEL.exec(Buffer.from(call.bytes).toString('latin1'))?.[1]
}

// Vendor ids of the gateway that differ from the stand-in's names.
const GATEWAY_IDS: Readonly<Record<string, string>> = { azure: 'azure-openai' }
const KEYED_VENDORS = new Set(['openai', 'anthropic', 'gemini', 'dashscope', 'voyage', 'cohere', 'azure', 'presets'])

/**
 * The id by which a gateway's events name the key of a call; undefined without a key, and for clouds, whose credentials are tokens and
 * signatures that change. For a vendor with an id of your own it differs.
 */
function credentialIdFor(vendor: string, call: IncomingCall): string | undefined {
  const key = credentialOf(call)
  if (key === '' || !KEYED_VENDORS.has(vendor)) return undefined
  const preset = /^\/presets\/([^/]+)\//.exec(call.path)?.[1]
  return credentialIdOf(preset ?? GATEWAY_IDS[vendor] ?? vendor, key)
}

function decodedOrAsIs(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A server on 127.0.0.1 that hands every call to a receiver. */
export interface SocketServer {
  readonly origin: string
  readonly port: number
  /** Sockets that are open now, idle ones included. */
  readonly sockets: ReadonlySet<Socket>
  /** Cuts all connections and stops listening. */
  close(): Promise<void>
}

// Longer than clients keep connections open, so that no connection closes while it is reused.
const KEEP_ALIVE_MS = 120_000

/** Listens on a port of 127.0.0.1, or on a free one for 0. Rejects if the port is unavailable. */
export async function socketServer(port: number, receive: CallReceiver): Promise<SocketServer> {
  const sockets = new Set<Socket>()
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
    readCall(request, response, receive)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await listening(server, port)
  const { port: actualPort } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${actualPort}`,
    port: actualPort,
    sockets,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function readCall(request: IncomingMessage, response: ServerResponse, receive: CallReceiver): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const [path, query] = split(request.url ?? '')
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(request.headers))
      headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '')
    receive(
      {
        method: request.method ?? '',
        path,
        query,
        headers,
        bytes: Buffer.concat(chunks),
      },
      new SocketConnection(response),
    )
  })
  // A caller that disconnects while sending has not made a call. Without a listener, the error would end the process.
  request.on('error', () => response.destroy())
}

/** A connection over a socket. */
class SocketConnection implements VendorConnection {
  readonly #response: ServerResponse
  #onDisconnect: (() => void) | undefined
  #isEnded = false

  constructor(response: ServerResponse) {
    this.#response = response
    // A write may meet a socket that has just closed; the close itself is what counts, and it is reported below.
    response.on('error', () => response.destroy())
    response.on('close', () => {
      if (this.#isEnded) return
      this.#isEnded = true
      this.#onDisconnect?.()
    })
  }

  get closed(): boolean {
    return this.#isEnded
  }

  head(status: number, headers: readonly string[]): void {
    if (this.#isEnded) return
    this.#response.writeHead(status, [...headers])
    // Sends headers immediately, like a vendor, even if the body starts later.
    this.#response.flushHeaders()
  }

  write(bytes: Uint8Array): boolean {
    return !this.#isEnded && this.#response.write(bytes)
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#response.end()
  }

  reset(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const { socket } = this.#response
    // Before the headers the caller gets a reset, later a plain close, after which the sent bytes can still be read.
    if (this.#response.headersSent) socket?.destroySoon()
    else socket?.resetAndDestroy()
  }

  refuse(): void {
    this.reset()
  }

  onDrain(listener: () => void): void {
    this.#response.on('drain', listener)
  }

  onDisconnect(listener: () => void): void {
    this.#onDisconnect = listener
  }
}
