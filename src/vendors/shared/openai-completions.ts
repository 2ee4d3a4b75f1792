import { Buffer } from 'node:buffer'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectOf, objectsIn } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import { chatUsage } from '../../endpoints/chat/chat-completion.ts'
import { type CompletionRequest, choiceCount } from '../../endpoints/completions/completion-request.ts'
import type { CompletionsOperation } from '../../endpoints/completions/completions-endpoint.ts'
import { type EventLines, PassThroughStream } from '../../endpoints/event-reader.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import { replaceString } from '../../wire/json-edits.ts'
import { SSE_DONE, sseData } from '../../wire/sse.ts'
import type { AnswerBody, VendorCall, VendorFailure, WireRequest } from '../vendor.ts'
import { unsupportedParameter } from './invalid-response.ts'
import { completed, editedBytes } from './openai-chat.ts'
import { openaiFinishReason, openaiUsage, shownUsage } from './openai-chat-answer.ts'
import { applyFieldRules, type FieldRules, failedChoice, isErrorEnvelope } from './openai-chat-dialect.ts'
import { usageAtTier } from './vendor-cost.ts'
import { bearerHeaders } from './vendor-options.ts'

/** The differences between servers of OpenAI's completions dialect. */
export interface OpenAICompletionsDialect {
  /** Path below the vendor's origin. */
  readonly path: string
  /** Pattern of the vendor's own ids of the models that complete texts. If omitted, all chat models do. */
  readonly models?: RegExp | undefined
  /** Longest completion, in tokens. A larger bound of a request is lowered to it. */
  readonly maxTokens?: number | undefined
  /** False for servers that accept one text only. */
  readonly takesLists?: boolean | undefined
  /** Whether answers have the shape of chat completions, such as Mistral's. Their text is put in the place of the dialect. */
  readonly answersAsChat?: boolean | undefined
  /** False for servers that report usage in every stream and may reject `stream_options`. */
  readonly asksForUsage?: boolean | undefined
  readonly rules?: FieldRules<CompletionRequest> | undefined
  /** Reads an error envelope that came inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

type Call = VendorCall<CompletionRequest>

/** Text completions at a server of OpenAI's dialect. Requests and answers pass with another model id. */
export function openaiCompletions(dialect: OpenAICompletionsDialect): CompletionsOperation {
  return {
    serves: ({ upstream }) => dialect.models?.test(upstream) !== false,
    maxTokens: dialect.maxTokens,
    toWire: (call) => toWire(call, dialect),
    fromWire: (chunks, call) => passCompletion(chunks, call, dialect),
    stream: (call) => new CompletionStream(call, dialect),
  }
}

function toWire(call: Call, dialect: OpenAICompletionsDialect): WireRequest {
  const { request } = call
  const { asksForUsage = true, maxTokens = Number.POSITIVE_INFINITY, rules = {} } = dialect
  // Servers of llama.cpp write as many tokens as it says, whatever `max_tokens` is.
  if (request['n_predict'] != null) throw unsupportedParameter('n_predict', 'n_predict: use max_tokens')
  if (dialect.takesLists === false && typeof request.prompt !== 'string')
    throw unsupportedParameter('prompt', 'prompt: this model accepts one text, not a list')
  const { body, dropped } = applyFieldRules(request, rules)
  const isLowered = (request.max_tokens ?? 0) > maxTokens
  const isUnchanged = body === undefined && !isLowered
  const edited =
    isUnchanged && call.bytes !== undefined ? editedBytes(call, asBuffer(call.bytes), asksForUsage) : undefined
  const written = { ...(body ?? request), ...(isLowered ? { max_tokens: maxTokens } : {}) }
  return {
    path: dialect.path,
    headers: bearerHeaders(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body: edited ?? exactJsonText(completed(written, call, asksForUsage)),
    dropped,
  }
}

/** Undefined unless each choice has its text. */
function passCompletion(
  chunks: readonly Uint8Array[],
  call: Call,
  { answersAsChat }: OpenAICompletionsDialect,
): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const answer = parseAnswerJson(bytes.toString('utf8'))
  if (!isJsonObject(answer) || isErrorEnvelope(answer) || failedChoice(answer['choices']) !== undefined)
    return undefined
  const isMended = mendChoices(answer, answersAsChat)
  const choices = choicesOf(answer)
  if (choices.length === 0 || !choices.every(({ text }) => typeof text === 'string')) return undefined
  const usage = usageIn(answer, call.request['service_tier'])
  const outputBytes = textBytes(choices)
  const shown = shownUsage(answer['usage'], usage, call.billedUsage?.(usage, outputBytes), call.isBilled)
  const { model } = answer
  const renamed =
    isMended || shown !== undefined || typeof model !== 'string'
      ? undefined
      : replaceString(bytes, 'model', model, call.publicModel)
  const body = { ...answer, model: call.publicModel, ...(shown === undefined ? {} : { usage: shown }) }
  return { chunks: [renamed ?? Buffer.from(JSON.stringify(body))], usage, outputBytes }
}

function usageIn({ usage, service_tier: tier }: Record<string, unknown>, askedTier: unknown): Usage | undefined {
  return usageAtTier(openaiUsage(usage), tier, askedTier)
}

function choicesOf({ choices }: Record<string, unknown>): Record<string, unknown>[] {
  return objectsIn(choices)
}

function textBytes(choices: readonly Record<string, unknown>[]): number {
  return choices.reduce((sum, { text }) => sum + (typeof text === 'string' ? Buffer.byteLength(text) : 0), 0)
}

/** Writes choices in the form of the dialect, in place. Returns whether it changed the answer. */
function mendChoices(answer: Record<string, unknown>, answersAsChat = false): boolean {
  let changed = answersAsChat
  if (answersAsChat) {
    answer['object'] = 'text_completion'
    answer['choices'] = choicesOf(answer).map(({ index, message, delta, finish_reason }) => {
      const said = isJsonObject(message) ? message : objectOf(delta)
      return { index, text: said['content'] ?? '', logprobs: null, finish_reason }
    })
  }
  for (const choice of choicesOf(answer)) {
    const { finish_reason: reason } = choice
    const known = typeof reason === 'string' && reason !== '' ? openaiFinishReason(reason) : null
    if (known === (reason ?? null)) continue
    choice['finish_reason'] = known
    changed = true
  }
  return changed
}

/**
 * Passes a stream of text completions through, event by event, with the model id replaced. Usage is sent only if requested. The answer
 * is complete at `[DONE]`, or if each choice has a finish reason when the body ends.
 */
class CompletionStream extends PassThroughStream {
  usage: Usage | undefined
  readonly #call: Pick<Call, 'publicModel' | 'costOf' | 'billedUsage' | 'isBilled' | 'nowMs'>
  readonly #dialect: OpenAICompletionsDialect
  readonly #wantsUsage: boolean
  readonly #choices: number
  readonly #askedTier: unknown
  readonly #ended = new Set<unknown>()
  #id: unknown
  #created: unknown

  constructor(call: Call, dialect: OpenAICompletionsDialect) {
    super()
    this.#call = call
    this.#dialect = dialect
    this.#wantsUsage = call.request.stream_options?.include_usage === true
    this.#choices = choiceCount(call.request)
    this.#askedTier = call.request['service_tier']
  }

  override get hasTextEnded(): boolean {
    return this.#ended.size >= this.#choices
  }

  protected override bodyEnded(): Buffer | undefined {
    if (!this.hasTextEnded) return undefined
    this.finish()
    return this.#ending()
  }

  protected override readEndMark(): void {
    this.finish()
    this.replaceEvent(this.#ending())
  }

  protected override readValue(chunk: Record<string, unknown>, { name }: EventLines): void {
    if (name?.trim() === 'error' || isErrorEnvelope(chunk) || failedChoice(chunk['choices']) !== undefined) {
      this.usage = usedOf(usageIn(chunk, this.#askedTier)) ?? this.usage
      this.fail(this.#dialect.streamFailure(chunk))
    } else this.#readChunk(chunk)
  }

  #readChunk(chunk: Record<string, unknown>): void {
    let changed = mendChoices(chunk, this.#dialect.answersAsChat)
    const choices = choicesOf(chunk)
    const usage = usageIn(chunk, this.#askedTier)
    this.usage = usage ?? this.usage
    if (choices.length === 0 && (usage === undefined || !this.#wantsUsage)) {
      this.drop()
      return
    }
    this.#id ??= chunk['id']
    this.#created ??= chunk['created']
    const bytes = textBytes(choices)
    if (bytes > 0) this.countContent(bytes)
    for (const { index = 0, finish_reason: reason } of choices) {
      if (typeof reason !== 'string') continue
      this.#ended.add(index)
      this.hasContent = true
    }
    if (!this.#wantsUsage && 'usage' in chunk) changed = delete chunk['usage']
    else if (usage !== undefined) {
      chunk['usage'] = this.#shown(chunk['usage'], usage)
      changed = true
    }
    const model = Buffer.from(JSON.stringify(this.#call.publicModel))
    if (!changed && this.editString(['model'], chunk['model'], model)) return
    chunk['model'] = this.#call.publicModel
    this.replaceEvent(Buffer.from(sseData(JSON.stringify(chunk))))
  }

  /** Usage as its caller reads it, with what the call costs. */
  #shown(wire: unknown, usage: Usage): object {
    const { billedUsage, costOf, isBilled } = this.#call
    const billed = billedUsage?.(usage, this.outputBytesSeen)
    const cost = costOf?.(billed ?? usage)
    return {
      ...(shownUsage(wire, usage, billed, isBilled) ?? (wire as object)),
      ...(cost === undefined ? {} : { cost }),
    }
  }

  /** The end mark, after the usage that is charged if it was requested and none came. */
  #ending(): Buffer {
    const billed = this.#wantsUsage && this.usage === undefined ? this.#billedEstimate() : undefined
    if (billed === undefined) return Buffer.from(SSE_DONE)
    const { publicModel: model, nowMs, costOf } = this.#call
    const cost = costOf?.(billed)
    const usage = { ...chatUsage(billed), ...(cost === undefined ? {} : { cost }) }
    const created = this.#created ?? Math.floor(nowMs / 1_000)
    const chunk = { id: this.#id, object: 'text_completion', created, model, choices: [], usage }
    return Buffer.from(sseData(JSON.stringify(chunk)) + SSE_DONE)
  }

  #billedEstimate(): Usage | undefined {
    return this.#call.billedUsage?.(undefined, this.outputBytesSeen)
  }
}
