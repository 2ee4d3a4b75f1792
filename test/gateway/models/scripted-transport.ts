import { Buffer } from 'node:buffer'
import type { Timer } from '../../../src/core/clock.ts'
import type { FakeClock } from '../../../src/testing/index.ts'
import type {
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from '../../../src/transport/transport.ts'

/** Outcomes of a call at a vendor. */
export const SCRIPTS = [
  ...['answer', 'answer', 'answer', 'refuse', 'reset', 'status', 'hang', 'garbage', 'cut', 'cut-later'],
  ...['error-event', 'stall', 'no-usage', 'end-early', 'empty'],
] as const

/** A call as a vendor will treat it. */
export interface CallPlan {
  readonly script: (typeof SCRIPTS)[number]
  readonly connectMs: number
  readonly headMs: number
  readonly eventMs: number
  readonly events: number
  readonly status: number
  readonly retryAfter: string | undefined
}

/** A call that was sent. */
export interface SentCall {
  /** Mark in the caller's text. */
  readonly mark: string
  readonly host: string
  readonly key: string
  readonly model: string
  readonly atMs: number
  endedAtMs: number | undefined
  /** The vendor has it, and has not refused it. */
  mayBeBilled: boolean
  /** The vendor has begun to answer. */
  isBilled: boolean
}

/** Vendors of OpenAI's chat dialect without sockets, which do with each call what the next plan says. */
export class ScriptedTransport implements Transport {
  readonly sent: SentCall[] = []
  readonly clock: FakeClock
  readonly #plans: readonly CallPlan[]

  constructor(clock: FakeClock, plans: readonly CallPlan[]) {
    this.clock = clock
    this.#plans = plans
  }

  send(request: TransportRequest, handler: TransportHandler): TransportControl {
    const { model, stream, messages } = JSON.parse(textOf(request.body)) as {
      readonly model: string
      readonly stream?: boolean
      readonly messages: readonly { readonly content: string }[]
    }
    const key = request.headers[request.headers.findIndex((name) => /^authorization$/i.test(name)) + 1] ?? ''
    const call: SentCall = {
      mark: messages[0]!.content,
      host: new URL(request.origin).hostname,
      key: key.replace('Bearer ', ''),
      model,
      atMs: this.clock.now(),
      endedAtMs: undefined,
      mayBeBilled: false,
      isBilled: false,
    }
    const plan = this.#plans[this.sent.length % this.#plans.length]!
    this.sent.push(call)
    return new ScriptedCall(this.clock, { request, handler, plan, call, isStream: stream === true })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

interface CallParts {
  readonly request: TransportRequest
  readonly handler: TransportHandler
  readonly plan: CallPlan
  readonly call: SentCall
  readonly isStream: boolean
}

class ScriptedCall implements TransportControl {
  readonly #clock: FakeClock
  readonly #parts: CallParts
  readonly #waiting: (() => void)[] = []
  #phase: TransportFailure['phase'] = 'connect'
  #isOver = false
  #isPaused = false
  #timeout: Timer | undefined

  constructor(clock: FakeClock, parts: CallParts) {
    this.#clock = clock
    this.#parts = parts
    const { plan, call, request } = parts
    this.#after(plan.connectMs, () => {
      if (plan.script === 'refuse') return this.#fail('refused')
      this.#phase = 'sent'
      call.mayBeBilled = true
      this.#watch(request.firstByteTimeoutMs)
      if (plan.script !== 'hang') this.#after(plan.headMs, () => this.#answer())
    })
  }

  abort(): void {
    queueMicrotask(() => this.#fail('aborted'))
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    while (!this.#isPaused && this.#waiting.length > 0) this.#waiting.shift()!()
  }

  #answer(): void {
    const { plan, call, isStream } = this.#parts
    if (plan.script === 'reset') this.#fail('reset')
    else if (plan.script === 'status') {
      // A vendor that says that it took too long may have made the answer.
      call.mayBeBilled = plan.status === 408 || plan.status === 504
      this.#head(plan.status, plan.retryAfter === undefined ? {} : { 'retry-after': plan.retryAfter })
      this.#data('{"error":{"message":"no","type":"error","code":null}}')
      this.#end()
    } else {
      call.isBilled = true
      this.#head(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
      if (plan.script === 'empty') this.#end()
      else if (isStream) this.#event(0)
      else this.#after(plan.eventMs, () => this.#whole())
    }
  }

  #whole(): void {
    const { script, events } = this.#parts.plan
    const message = { role: 'assistant', content: 'ab '.repeat(events) }
    const usage = script === 'no-usage' ? {} : { usage: usageOf(events) }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const text = JSON.stringify({ ...HEAD, object: 'chat.completion', choices, ...usage })
    const isPart = script !== 'answer' && script !== 'no-usage'
    this.#data(isPart ? text.slice(0, 40) : text)
    if (script === 'cut' || script === 'cut-later') this.#fail('reset')
    else if (script !== 'stall') this.#end()
  }

  #event(index: number): void {
    const { script, events, eventMs } = this.#parts.plan
    this.#after(eventMs, () => {
      if (index === (script === 'cut-later' ? 2 : 0) || index === events) {
        if (script === 'cut' || script === 'cut-later') return this.#fail('reset')
        if (script === 'garbage') this.#data('data: {"choices": [{"del\n\n')
        if (script === 'error-event') this.#data('data: {"error":{"message":"no","type":"server_error"}}\n\n')
        if (script === 'stall') return
        if (script === 'garbage' || script === 'error-event' || script === 'end-early') return this.#end()
      }
      const delta = index < events ? { role: 'assistant', content: 'ab cdefg' } : {}
      this.#chunk({ choices: [{ index: 0, delta, finish_reason: index < events ? null : 'stop' }] })
      if (index < events) return this.#event(index + 1)
      if (script !== 'no-usage') this.#chunk({ choices: [], usage: usageOf(events) })
      this.#data('data: [DONE]\n\n')
      this.#end()
    })
  }

  #chunk(members: object): void {
    this.#data(`data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', ...members })}\n\n`)
  }

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#phase = 'body'
    this.#watch(this.#parts.request.idleTimeoutMs)
    this.#parts.handler.onHead(status, { 'content-type': 'application/json', ...headers })
  }

  #data(text: string): void {
    if (this.#isOver) return
    this.#watch(this.#parts.request.idleTimeoutMs)
    this.#parts.handler.onData(Buffer.from(text))
  }

  #end(): void {
    if (this.#isOver) return
    this.#finish()
    this.#parts.handler.onEnd()
  }

  #fail(kind: TransportFailure['kind']): void {
    if (this.#isOver) return
    this.#finish()
    this.#parts.handler.onFailure({ phase: this.#phase, kind, error: new Error(kind) })
  }

  #finish(): void {
    this.#isOver = true
    this.#timeout?.cancel()
    this.#parts.call.endedAtMs = this.#clock.now()
  }

  #watch(timeoutMs: number): void {
    this.#timeout?.cancel()
    this.#timeout = this.#clock.schedule(timeoutMs, () => this.#fail('timeout'))
  }

  #after(delayMs: number, step: () => void): void {
    this.#clock.schedule(delayMs, () => {
      if (this.#isOver) return
      if (this.#isPaused) this.#waiting.push(step)
      else step()
    })
  }
}

const HEAD = { id: 'c', created: 1, model: 'm' }

function usageOf(events: number): object {
  return { prompt_tokens: 10, completion_tokens: events * 2, total_tokens: 10 + events * 2 }
}

function textOf(body: TransportRequest['body']): string {
  if (typeof body === 'string') return body
  const chunks = body instanceof Uint8Array ? [body] : Array.isArray(body) ? (body as Uint8Array[]) : []
  return Buffer.concat(chunks).toString()
}
