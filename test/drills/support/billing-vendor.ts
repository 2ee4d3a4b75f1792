import { createServer, type ServerResponse } from 'node:http'
import type { Usage } from '../../../src/core/usage.ts'
import { soundEvent } from '../../gateway/speech-vendor.ts'
import { listen } from '../../support/listen.ts'
import type { ExitPlan } from './exit-plan.ts'

/** What a vendor bills for one call. */
export interface VendorBill {
  readonly model: string
  readonly usage: Usage
}

/** A stand-in for all vendors that counts what it would bill, by its own tokens. */
export interface BillingVendor {
  readonly origin: string
  /** What it bills for the calls of a plan. */
  billsOf(plan: ExitPlan): readonly VendorBill[]
  /** How many calls of a plan it bills anything for. */
  billedCallsOf(plan: ExitPlan): number
  /** Resolves once a call of the plan has arrived. */
  arrived(plan: ExitPlan): Promise<void>
  close(): Promise<void>
}

/** The id of the model that only ever fails, at the vendor. */
export const FALLING_UPSTREAM = 'falling'
export const FALLING_MODEL = 'chat-falling'

/** What a picture of the size and quality of the drill has, by the vendor's table. */
export const PICTURE_TOKENS = 272
const PROMPT_BYTES_PER_TOKEN = 4.2

/** Starts one that answers calls as these plans say; a plan's second call is answered in full. */
export async function startBillingVendor(plans: readonly ExitPlan[]): Promise<BillingVendor> {
  const bills = new Map<number, VendorBill[][]>()
  const arrivals = new Map<number, () => void>()
  const arrived = plans.map((plan) => new Promise<void>((resolve) => arrivals.set(plan.id, resolve)))
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const plan = plans[Number(/\[exit (\d+)\]/.exec(body)?.[1])]!
      const earlier = bills.get(plan.id) ?? []
      const own: VendorBill[] = []
      bills.set(plan.id, [...earlier, own])
      arrivals.get(plan.id)?.()
      const isFalling = (JSON.parse(body) as { model: string }).model === FALLING_UPSTREAM
      const isFirst = earlier.length === 0
      const cutAt = isFirst && plan.kind === 'vendor cuts' ? plan.at : undefined
      const isLate = plan.kind === 'vendor is too slow'
      new VendorAnswer(response, plan, own, { isFalling, cutAt, isLate }).begin()
    })
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    billsOf: (plan) => bills.get(plan.id)?.flat() ?? [],
    billedCallsOf: (plan) =>
      (bills.get(plan.id) ?? []).filter((call) =>
        call.some(({ usage }) => Object.values(usage).some((count) => count > 0)),
      ).length,
    arrived: (plan) => arrived[plan.id]!,
    close,
  }
}

/** Bytes, and what is billed more once they are made. */
interface Piece {
  readonly text: string
  readonly usage?: Usage
}

class VendorAnswer {
  readonly #response: ServerResponse
  readonly #plan: ExitPlan
  readonly #bills: VendorBill[]
  readonly #isFalling: boolean
  readonly #cutAt: number | undefined
  readonly #isLate: boolean
  readonly #promptTokens: number
  #isClosed = false

  constructor(
    response: ServerResponse,
    plan: ExitPlan,
    bills: VendorBill[],
    facts: { readonly isFalling: boolean; readonly cutAt: number | undefined; readonly isLate: boolean },
  ) {
    this.#response = response
    this.#plan = plan
    this.#bills = bills
    this.#isFalling = facts.isFalling
    this.#cutAt = facts.cutAt
    this.#isLate = facts.isLate
    this.#promptTokens = Math.ceil(Buffer.byteLength(plan.prompt) / PROMPT_BYTES_PER_TOKEN) + 4
    response.on('close', () => {
      this.#isClosed = true
    })
  }

  begin(): void {
    if (this.#isFalling) this.#fall()
    else if (this.#isLate) this.#comeLate()
    else if (this.#plan.isStream) void this.#stream()
    else void this.#whole()
  }

  /** An answer with an error status is not billed; an error behind a report of usage is billed as reported. */
  #fall(): void {
    const error = { error: { message: 'overloaded', type: 'server_error' } }
    if (this.#plan.firstFailure === 'status') {
      this.#json(503, error)
      return
    }
    this.#bill({ inputTokens: this.#promptTokens }, FALLING_MODEL)
    const usage = { prompt_tokens: this.#promptTokens, completion_tokens: 0, total_tokens: this.#promptTokens }
    this.#response.writeHead(200, { 'content-type': 'text/event-stream' })
    this.#response.end(data({ ...ENVELOPE, choices: [], usage }) + data(error))
  }

  /** Begun, and not sent in time: a whole answer is made all the same, a stream is not made further once nobody reads it. */
  #comeLate(): void {
    const { form, isStream, hiddenTokens, lateness } = this.#plan
    if (!isStream || form === 'images') this.#bill(this.#fullUsage())
    else if (form === 'speech') this.#bill({ characters: this.#plan.prompt.length })
    else this.#bill({ inputTokens: this.#promptTokens, outputTokens: hiddenTokens })
    if (lateness === 'silence') return
    this.#response.writeHead(504, { 'content-type': 'text/html' })
    this.#response.end('<html><body><h1>504 Gateway Time-out</h1></body></html>')
  }

  /** Made in some milliseconds and sent at once; it is billed in full, whether anybody still waits or not. */
  async #whole(): Promise<void> {
    this.#bill(this.#fullUsage())
    await pause(2 + this.#plan.tokens.length / 20)
    const body = JSON.stringify(wholeBody(this.#plan, this.#promptTokens))
    if (this.#isClosed) return
    if (this.#cutAt === undefined) return this.#json(200, body)
    this.#response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    this.#response.write(body.slice(0, Math.floor(body.length * this.#cutAt)), () => this.#response.destroy())
  }

  async #stream(): Promise<void> {
    const pieces = streamPieces(this.#plan, this.#promptTokens)
    let left = Number.POSITIVE_INFINITY
    if (this.#cutAt !== undefined) left = this.#cutAt * pieces.reduce((sum, { text }) => sum + text.length, 0)
    if (this.#plan.form === 'images') this.#billPictures(pieces, left)
    this.#response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const { text, usage } of pieces) {
      if (this.#isClosed) return
      if (usage !== undefined && this.#plan.form !== 'images') this.#bill(usage)
      if (left < text.length) {
        this.#response.write(text.slice(0, Math.floor(left)), () => this.#response.destroy())
        return
      }
      left -= text.length
      if (text !== '') this.#response.write(text)
      await pause(3)
    }
    this.#response.end()
  }

  /** Pictures are made and billed whether anybody waits or not, but not where the vendor itself breaks them off. */
  #billPictures(pieces: readonly Piece[], cutAfter: number): void {
    let end = 0
    for (const { text, usage } of pieces) {
      end += text.length
      if (usage !== undefined && end <= cutAfter) this.#bill(usage)
    }
  }

  #fullUsage(): Usage {
    const { form, tokens, hiddenTokens, pictures } = this.#plan
    if (form === 'embeddings') return { inputTokens: this.#promptTokens }
    if (form === 'images') return pictureUsage(this.#promptTokens, pictures)
    return { inputTokens: this.#promptTokens, outputTokens: tokens.length + hiddenTokens }
  }

  #bill(usage: Usage, model = this.#plan.model): void {
    this.#bills.push({ model, usage })
  }

  #json(status: number, body: unknown): void {
    this.#response.writeHead(status, { 'content-type': 'application/json' })
    this.#response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

const ENVELOPE = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function event(type: string, members: object): string {
  return `event: ${type}\n${data({ type, ...members })}`
}

function pictureUsage(inputTokens: number, images: number): Usage {
  return { inputTokens, images, outputTokens: images * PICTURE_TOKENS, outputImageTokens: images * PICTURE_TOKENS }
}

function reports({ kind }: ExitPlan): boolean {
  return kind !== 'no usage reported'
}

function wholeBody(plan: ExitPlan, inputTokens: number): object {
  const { form, tokens, hiddenTokens, pictures } = plan
  const text = tokens.join('')
  const outputTokens = tokens.length + hiddenTokens
  if (form === 'embeddings') {
    const usage = reports(plan) ? { usage: { prompt_tokens: inputTokens, total_tokens: inputTokens } } : {}
    return { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [1, 0] }], ...usage }
  }
  if (form === 'images') {
    const images = Array.from({ length: pictures }, () => ({ b64_json: 'aGk=' }))
    return { created: 1, data: images, ...(reports(plan) ? { usage: imageReport(inputTokens, pictures) } : {}) }
  }
  if (form === 'messages') {
    const usage = reports(plan) ? { usage: { input_tokens: inputTokens, output_tokens: outputTokens } } : {}
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', ...usage }
    return { ...message, stop_sequence: null, content: [{ type: 'text', text }] }
  }
  const message = { role: 'assistant', content: text, refusal: null }
  const choices = [{ index: 0, message, finish_reason: 'stop', logprobs: null }]
  const usage = reports(plan) ? { usage: chatReport(inputTokens, outputTokens, hiddenTokens) } : {}
  return { ...ENVELOPE, object: 'chat.completion', choices, ...usage }
}

function chatReport(prompt: number, completion: number, hidden: number): object {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    completion_tokens_details: { reasoning_tokens: hidden },
  }
}

function imageReport(inputTokens: number, images: number): object {
  return {
    input_tokens: inputTokens,
    output_tokens: images * PICTURE_TOKENS,
    total_tokens: inputTokens + images * PICTURE_TOKENS,
    input_tokens_details: { image_tokens: 0, text_tokens: inputTokens },
  }
}

function streamPieces(plan: ExitPlan, inputTokens: number): Piece[] {
  switch (plan.form) {
    case 'messages':
      return messagePieces(plan, inputTokens)
    case 'images':
      return picturePieces(plan, inputTokens)
    case 'speech':
      return speechPieces(plan)
    default:
      return chatPieces(plan, inputTokens)
  }
}

function textPieces({ tokens, tokensPerChunk }: ExitPlan, write: (text: string) => string): Piece[] {
  const pieces: Piece[] = []
  for (let index = 0; index < tokens.length; index += tokensPerChunk) {
    const part = tokens.slice(index, index + tokensPerChunk)
    pieces.push({ text: write(part.join('')), usage: { outputTokens: part.length } })
  }
  return pieces
}

function chatPieces(plan: ExitPlan, inputTokens: number): Piece[] {
  const chunk = (delta: object, finish: string | null = null): string =>
    data({ ...ENVELOPE, choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }] })
  const report = chatReport(inputTokens, plan.tokens.length + plan.hiddenTokens, plan.hiddenTokens)
  return [
    { text: '', usage: { inputTokens } },
    // Reasoning takes as long as text, and nobody sees it.
    ...textPieces({ ...plan, tokens: Array<string>(plan.hiddenTokens).fill('') }, () => ''),
    { text: chunk({ role: 'assistant', content: '' }) },
    ...textPieces(plan, (content) => chunk({ content })),
    { text: chunk({}, 'stop') },
    ...(reports(plan) ? [{ text: data({ ...ENVELOPE, choices: [], usage: report }) }] : []),
    { text: 'data: [DONE]\n\n' },
  ]
}

function messagePieces(plan: ExitPlan, inputTokens: number): Piece[] {
  const begun = reports(plan) ? { usage: { input_tokens: inputTokens, output_tokens: 1 } } : {}
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], ...begun }
  const ended = reports(plan) ? { usage: { output_tokens: plan.tokens.length } } : {}
  return [
    { text: event('message_start', { message }), usage: { inputTokens } },
    { text: event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) },
    ...textPieces(plan, (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    { text: event('content_block_stop', { index: 0 }) },
    { text: event('message_delta', { delta: { stop_reason: 'end_turn' }, ...ended }) },
    { text: event('message_stop', {}) },
  ]
}

function picturePieces(plan: ExitPlan, inputTokens: number): Piece[] {
  return Array.from({ length: plan.pictures }, () => ({
    text: event('image_generation.completed', {
      b64_json: 'aGk=',
      ...(reports(plan) ? { usage: imageReport(inputTokens, 1) } : {}),
    }),
    usage: pictureUsage(inputTokens, 1),
  }))
}

function speechPieces({ prompt }: ExitPlan): Piece[] {
  const sound = new Uint8Array(4_800)
  return [
    { text: soundEvent(sound), usage: { characters: prompt.length } },
    { text: soundEvent(sound) },
    { text: soundEvent(sound) },
    { text: soundEvent(sound, 'stop') },
  ]
}
