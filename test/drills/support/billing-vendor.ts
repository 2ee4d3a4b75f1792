import { createServer, type ServerResponse } from 'node:http'
import type { Usage } from '../../../src/core/usage.ts'
import { listen } from '../../support/listen.ts'
import { type AnsweredCall, type Piece, usageBeforeText, wholeUsage } from './exit-dialects.ts'
import { dialectOf, FALLING_MODEL, FALLING_UPSTREAM, formOf } from './exit-forms.ts'
import type { ExitPlan } from './exit-plan.ts'

/** Vendor's bill for one call. */
export interface VendorBill {
  readonly model: string
  readonly usage: Usage
  /** Price fields of what is billed. */
  readonly fields: Readonly<Record<string, string>>
}

/** A stand-in for all vendors that counts what it would bill, by its own tokens. */
export interface BillingVendor {
  readonly origin: string
  /** Returns the vendor's bills for the calls of a plan. */
  billsOf(plan: ExitPlan): readonly VendorBill[]
  /** How many calls of a plan it bills anything for. */
  billedCallsOf(plan: ExitPlan): number
  /** Whether it has sent a report for each call of a plan that it bills. */
  hasReported(plan: ExitPlan): boolean
  /** Resolves once a call of the plan has arrived. */
  arrived(plan: ExitPlan): Promise<void>
  close(): Promise<void>
}

interface BilledCall {
  readonly bills: VendorBill[]
  isReported: boolean
}

const PROMPT_BYTES_PER_TOKEN = 4.2
/** Speed of every model, about thirty times that of a real one. */
const TOKENS_PER_MS = 3
/** The longest answer of the models of the drill, for calls without a bound. */
const MAX_ANSWER_TOKENS = 2_000

interface ReceivedBody {
  readonly model?: string
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly max_output_tokens?: number
  readonly stream_options?: { readonly include_usage?: boolean }
}

/** Starts one that answers calls as these plans say; a plan's second call is answered in full. */
export async function startBillingVendor(plans: readonly ExitPlan[]): Promise<BillingVendor> {
  const calls = new Map<number, BilledCall[]>()
  const arrivals = new Map<number, () => void>()
  const arrived = plans.map((plan) => new Promise<void>((resolve) => arrivals.set(plan.id, resolve)))
  const billed = (plan: ExitPlan): BilledCall[] =>
    (calls.get(plan.id) ?? []).filter(({ bills }) =>
      bills.some(({ usage }) => Object.values(usage).some((count) => typeof count === 'number' && count > 0)),
    )
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('latin1')
      const [prompt = '', id] = /\[exit (\d+)\][^"\r]*/.exec(body) ?? []
      const plan = plans[Number(id)]!
      const earlier = calls.get(plan.id) ?? []
      const own: BilledCall = { bills: [], isReported: false }
      calls.set(plan.id, [...earlier, own])
      arrivals.get(plan.id)?.()
      const json = body.startsWith('{') ? (JSON.parse(body) as ReceivedBody) : {}
      const isFirst = earlier.length === 0
      new VendorAnswer(response, own, answeredCall(plan, prompt, json), {
        isFalling: json.model === FALLING_UPSTREAM,
        cutAt: isFirst && plan.kind === 'vendor cuts' ? plan.at : undefined,
        // A batch sends a request again that was not answered.
        isLate: plan.kind === 'vendor is too slow' && (isFirst || formOf(plan).task !== 'batch'),
      }).begin()
    })
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    billsOf: (plan) => calls.get(plan.id)?.flatMap(({ bills }) => bills) ?? [],
    billedCallsOf: (plan) => billed(plan).length,
    hasReported: (plan) => billed(plan).every(({ isReported }) => isReported),
    arrived: (plan) => arrived[plan.id]!,
    close,
  }
}

/** Without a bound of the caller the answer is as long as the bound that the vendor got. */
function answeredCall(plan: ExitPlan, prompt: string, body: ReceivedBody): AnsweredCall {
  const bound = body.max_completion_tokens ?? body.max_tokens ?? body.max_output_tokens ?? MAX_ANSWER_TOKENS
  const { tokens } = plan
  const isChatStream = formOf(plan).dialect === 'chat' && plan.isStream
  return {
    plan,
    inputTokens: Math.ceil(prompt.length / PROMPT_BYTES_PER_TOKEN) + 4,
    tokens:
      plan.maxTokens === undefined
        ? Array.from({ length: bound }, (_, index) => tokens[index % tokens.length]!)
        : tokens.slice(0, bound),
    count: formOf(plan).task === 'batch' ? 1 : plan.count,
    isReported: plan.kind !== 'no usage reported' && (!isChatStream || body.stream_options?.include_usage === true),
  }
}

interface AnswerFaults {
  readonly isFalling: boolean
  readonly cutAt: number | undefined
  readonly isLate: boolean
}

class VendorAnswer {
  readonly #response: ServerResponse
  readonly #plan: ExitPlan
  readonly #own: BilledCall
  readonly #call: AnsweredCall
  readonly #pieces: readonly Piece[]
  readonly #faults: AnswerFaults
  readonly #fields: Readonly<Record<string, string>>
  readonly #isMadeAnyway: boolean
  #isClosed = false

  constructor(response: ServerResponse, own: BilledCall, call: AnsweredCall, faults: AnswerFaults) {
    const { isMadeAnyway = false, pieces } = dialectOf(call.plan)
    const { fields } = formOf(call.plan)
    this.#response = response
    this.#plan = call.plan
    this.#own = own
    this.#call = call
    this.#pieces = pieces(call)
    this.#faults = faults
    this.#fields = { ...fields, ...(call.plan.tier?.used === 'priority' ? { service_tier: 'priority' } : {}) }
    this.#isMadeAnyway = isMadeAnyway
    response.on('close', () => {
      this.#isClosed = true
    })
  }

  begin(): void {
    if (this.#faults.isFalling) this.#fall()
    else if (this.#faults.isLate) this.#comeLate()
    else if (this.#plan.isStream) void this.#stream()
    else void this.#whole()
  }

  /** An answer with an error status is not billed; an error behind a report of usage is billed as reported. */
  #fall(): void {
    const error = { error: { message: 'overloaded', type: 'server_error' } }
    if (this.#plan.firstFailure === 'status') {
      this.#json(503, JSON.stringify(error))
      return
    }
    const { inputTokens } = this.#call
    this.#bill({ inputTokens }, FALLING_MODEL)
    this.#own.isReported = true
    const usage = { prompt_tokens: inputTokens, completion_tokens: 0, total_tokens: inputTokens }
    const report = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }
    this.#response.writeHead(200, { 'content-type': 'text/event-stream' })
    this.#response.end(`data: ${JSON.stringify(report)}\n\ndata: ${JSON.stringify(error)}\n\n`)
  }

  /** The call has begun but is not answered in time: a whole answer is still generated, but a stream stops once nobody reads it. */
  #comeLate(): void {
    const isWhole = !this.#plan.isStream || this.#isMadeAnyway
    this.#bill(isWhole ? wholeUsage(this.#pieces) : usageBeforeText(this.#pieces))
    if (this.#plan.lateness === 'silence') return
    this.#response.writeHead(504, { 'content-type': 'text/html' })
    this.#response.end('<html><body><h1>504 Gateway Time-out</h1></body></html>')
  }

  /** Made in some milliseconds and sent at once; it is billed in full, whether anybody still waits or not. */
  async #whole(): Promise<void> {
    const { cutAt } = this.#faults
    this.#bill(wholeUsage(this.#pieces))
    await pause(2 + (this.#call.tokens.length + this.#plan.hiddenTokens) / TOKENS_PER_MS)
    const body = JSON.stringify(dialectOf(this.#plan).whole(this.#call))
    if (this.#isClosed) return
    if (cutAt === undefined) {
      this.#json(200, body)
      this.#own.isReported = this.#call.isReported
      return
    }
    this.#response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    this.#response.write(body.slice(0, Math.floor(body.length * cutAt)), () => this.#response.destroy())
  }

  async #stream(): Promise<void> {
    const { cutAt } = this.#faults
    const pieces = this.#pieces
    let left = Number.POSITIVE_INFINITY
    if (cutAt !== undefined) left = cutAt * pieces.reduce((sum, { text }) => sum + text.length, 0)
    if (this.#isMadeAnyway) this.#billAll(left)
    this.#response.writeHead(200, { 'content-type': 'text/event-stream' })
    const begunAtMs = performance.now()
    let tokens = 0
    for (const { text, usage } of pieces) {
      if (this.#isClosed) return
      if (usage !== undefined && !this.#isMadeAnyway) this.#bill(usage)
      if (left < text.length) {
        this.#response.write(text.slice(0, Math.floor(left)), () => this.#response.destroy())
        return
      }
      left -= text.length
      if (text !== '') this.#response.write(text)
      tokens += (usage?.outputTokens ?? 0) / this.#call.count
      await pause(begunAtMs + tokens / TOKENS_PER_MS - performance.now())
    }
    this.#response.end()
    this.#own.isReported = this.#call.isReported && !this.#isClosed
  }

  /** Bills images, which are generated whether anybody waits or not, unless the vendor itself breaks off. */
  #billAll(cutAfter: number): void {
    let end = 0
    for (const { text, usage } of this.#pieces) {
      end += text.length
      if (usage !== undefined && end <= cutAfter) this.#bill(usage)
    }
  }

  #bill(usage: Usage, model = this.#plan.model): void {
    this.#own.bills.push({ model, usage, fields: this.#fields })
  }

  #json(status: number, body: string): void {
    this.#response.writeHead(status, { 'content-type': 'application/json' })
    this.#response.end(body)
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
