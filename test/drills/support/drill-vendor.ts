import type {
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
} from '../../../src/transport/transport.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import type { HeaderMap } from '../../../src/wire/headers.ts'
import type { Stage, StageGate } from './stage-gate.ts'

const USAGE = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }

/** Tokens that a call of these drills is charged for if the vendor's report arrived: 9 and 3. */
export const REPORTED_TOKENS = USAGE.total_tokens

const WHOLE_PIECES = pieces(
  JSON.stringify({
    id: 'chatcmpl-drill',
    object: 'chat.completion',
    created: 1_767_225_600,
    model: 'gpt-5.4',
    choices: [{ index: 0, message: { role: 'assistant', content: 'one two three' }, finish_reason: 'stop' }],
    usage: USAGE,
  }),
)

const STREAM_PIECES = [
  chunk({ delta: { role: 'assistant', content: 'one ' } }),
  chunk({ delta: { content: 'two three' } }),
  chunk({ delta: {}, finish_reason: 'stop' }),
  `data: ${JSON.stringify({ ...envelope(), choices: [], usage: USAGE })}\n\n`,
  'data: [DONE]\n\n',
]

function envelope(): Record<string, unknown> {
  return { id: 'chatcmpl-drill', object: 'chat.completion.chunk', created: 1_767_225_600, model: 'gpt-5.4' }
}

function chunk(choice: Record<string, unknown>): string {
  return `data: ${JSON.stringify({ ...envelope(), choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`
}

function pieces(text: string): string[] {
  const middle = text.length >> 1
  return [text.slice(0, middle), text.slice(middle)]
}

const openaiVendor = openai({ apiKey: 'vendor-key', baseURL: 'https://vendor.example' })

/** A vendor whose bytes are passed on, through the gate. */
export function passingVendor(gate: StageGate): Vendor {
  const chat = openaiVendor.chat!
  const passThrough = chat.passThrough!
  return {
    ...openaiVendor,
    chat: {
      ...chat,
      passThrough: {
        ...passThrough,
        fromWire(chunks, call) {
          gate.pass('pass answer through')
          return passThrough.fromWire(chunks, call)
        },
        stream: (call) => gatedPush(passThrough.stream!(call), () => gate.pass('pass answer through')),
      },
    },
  }
}

/** The caller has some of the answer already when the second piece goes wrong. */
function gatedPush<Reader extends { push(bytes: Uint8Array): unknown }>(reader: Reader, pass: () => void): Reader {
  let count = 0
  const push = (bytes: Uint8Array): unknown => {
    count += 1
    if (count > 1) pass()
    return reader.push(bytes)
  }
  return new Proxy(reader, {
    get(target, name) {
      if (name === 'push') return push
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** A vendor whose translating functions pass through the gate. */
export function translatingVendor(gate: StageGate): Vendor {
  const { passThrough: _passThrough, ...chat } = openaiVendor.chat!
  return {
    ...openaiVendor,
    chat: {
      ...chat,
      toWire(call) {
        gate.pass('translate request')
        return chat.toWire(call)
      },
      fromWire(answer, call) {
        gate.pass('read answer')
        return chat.fromWire(answer, call)
      },
      decoder: (call, writer) => gatedPush(chat.decoder(call, writer), () => gate.pass('read answer')),
    },
  }
}

/** The connection to that vendor: each step of a call passes through the gate. */
export function drillTransport(gate: StageGate): Transport & { readonly calls: number; readonly openCalls: number } {
  let calls = 0
  const open = new Set<DrillCall>()
  return {
    get calls() {
      return calls
    },
    get openCalls() {
      return open.size
    },
    send(request, handler) {
      calls += 1
      const isStream = String(request.body).includes('"stream":true')
      const call = new DrillCall(gate, handler, () => open.delete(call))
      open.add(call)
      void call.play(isStream)
      return call
    },
    close: async () => undefined,
  }
}

class DrillCall implements TransportControl {
  readonly #gate: StageGate
  readonly #handler: TransportHandler
  readonly #onOver: () => void
  #phase: TransportFailure['phase'] = 'connect'
  #isOver = false
  #resumed: Promise<void> | undefined

  constructor(gate: StageGate, handler: TransportHandler, onOver: () => void) {
    this.#gate = gate
    this.#handler = handler
    this.#onOver = onOver
  }

  async play(isStream: boolean): Promise<void> {
    if (!(await this.#reach('send'))) return
    this.#phase = 'sent'
    if (!(await this.#reach('vendor head'))) return
    this.#phase = 'body'
    const type = isStream ? 'text/event-stream' : 'application/json'
    const headers: HeaderMap = { 'content-type': type }
    this.#handler.onHead(200, headers)
    for (const [index, piece] of (isStream ? STREAM_PIECES : WHOLE_PIECES).entries()) {
      await this.#resumed
      if (index > 0 && !(await this.#reach('vendor body'))) return
      if (this.#isOver) return
      this.#handler.onData(Buffer.from(piece))
      // Each piece is a network read of its own.
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (this.#isOver) return
    this.#over()
    this.#handler.onEnd()
  }

  abort(): void {
    queueMicrotask(() => this.#fail('aborted', new Error('given up')))
  }

  pause(): void {
    this.#resumed ??= new Promise(() => undefined)
  }

  resume(): void {}

  async #reach(stage: Stage): Promise<boolean> {
    // A transport never reports a fault before `send` has returned.
    await Promise.resolve()
    try {
      await this.#gate.reach(stage)
    } catch (error) {
      const isTimeOut = String(error).includes('no answer')
      this.#fail(isTimeOut ? 'timeout' : 'protocol', error as Error)
    }
    return !this.#isOver
  }

  #fail(kind: TransportFailure['kind'], error: Error): void {
    if (this.#isOver) return
    this.#over()
    this.#handler.onFailure({ phase: this.#phase, kind, error })
  }

  #over(): void {
    this.#isOver = true
    this.#onOver()
  }
}
