import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import { usedOf } from '../../../core/usage.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import { joinChunks } from '../../../wire/join-chunks.ts'
import { redactGoogleKeys } from '../../shared/google-error.ts'
import type { AnswerBody, VendorCall, VendorFailure } from '../../vendor.ts'
import { blocksPrompt, finishReason, isKnownReason, partsOf } from '../chat-from-wire.ts'
import { brokenCandidate, responseFailure } from '../error-from.ts'
import { generatedImageUsage, interactionUsage } from '../usage-from.ts'

/**
 * Reads a JSON response of `generateContent` as an interaction: one `model_output` step with texts and images in their order. A
 * refusal is `failed` and has no steps. Returns `undefined` for an error in a 2xx, or an answer with neither content nor a reason.
 */
export function generatedImageFromWire(
  chunks: readonly Uint8Array[],
  call: VendorCall<InteractionRequest>,
): AnswerBody | undefined {
  const reader = new GeneratedImageReader(call.apiKey)
  const blocks = reader.read(parseVendorJson(joinChunks(chunks).toString('utf8')))
  const usage = generatedImageUsage(reader.usageMetadata)
  if (reader.failure !== undefined) {
    // Reported usage of a broken answer is billed anyway.
    const used = usedOf(interactionUsage(usage, reader.pictures))
    return used && { chunks: [], usage: used, failure: reader.failure }
  }
  if (blocks.length === 0 && !reader.isFinished) return undefined
  const { status, errors } = reader.ending()
  const isFailed = status === 'failed'
  const interaction = {
    ...generatedInteraction(call),
    status,
    steps: isFailed || blocks.length === 0 ? [] : [{ type: 'model_output', content: blocks }],
    ...(errors.length === 0 ? {} : { errors }),
    ...(usage === undefined ? {} : { usage }),
  }
  const text = JSON.stringify(interaction)
  return {
    chunks: [Buffer.from(isFailed ? redactGoogleKeys(text, [call.apiKey]) : text)],
    usage: interactionUsage(usage, reader.pictures),
    isRefusal: isFailed && !reader.isCharged,
  }
}

/** A block of an interaction's `model_output` step. */
export type OutputBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime_type: string; readonly data: string }

/** Status of an answer in terms of interactions. */
interface GeneratedImageEnding {
  readonly status: 'completed' | 'incomplete' | 'failed'
  /** Errors of a failed interaction. */
  readonly errors: readonly { readonly code: string; readonly message: string }[]
}

/**
 * Reads response objects of `generateContent`, one for a whole answer and many for a stream, as the parts of an interaction.
 * Thoughts, and the draft images among them, are skipped.
 */
export class GeneratedImageReader {
  failure: VendorFailure | undefined
  /** Number of images so far. */
  pictures = 0
  /** The vendor's last `usageMetadata`. */
  usageMetadata: unknown
  readonly #apiKey: string
  #reason: string | undefined
  #explanation: string | undefined
  #isBlocked = false

  constructor(apiKey: string) {
    this.#apiKey = apiKey
  }

  /** Whether the vendor has sent a finish reason. */
  get isFinished(): boolean {
    return this.#isBlocked || this.#reason !== undefined
  }

  /** Whether an answer without content is charged: the vendor reports tokens, and its stop reason is not a known refusal. */
  get isCharged(): boolean {
    const isKnown = this.#isBlocked || this.#reason === undefined || isKnownReason(this.#reason)
    return !isKnown && usedOf(interactionUsage(generatedImageUsage(this.usageMetadata), 0)) !== undefined
  }

  /** Reads one response object and returns its blocks. */
  read(response: unknown): OutputBlock[] {
    this.failure ??= responseFailure(response, this.#apiKey)
    if (this.failure !== undefined || !isJsonObject(response)) return []
    this.usageMetadata = response['usageMetadata'] ?? this.usageMetadata
    const [candidate] = Array.isArray(response['candidates']) ? response['candidates'] : []
    if (isJsonObject(candidate)) return this.#readCandidate(candidate)
    const feedback = response['promptFeedback']
    if (isJsonObject(feedback) && blocksPrompt(feedback['blockReason'])) {
      this.#isBlocked = true
      this.#reason = String(feedback['blockReason'])
      this.#explanation = textOf(feedback['blockReasonMessage'])
    }
    return []
  }

  /** Returns the final status. A withheld answer is a failure unless it has an image. */
  ending(): GeneratedImageEnding {
    const reason = this.#isBlocked ? 'content_filter' : finishReason(this.#reason ?? 'STOP', false)
    if (reason === 'length') return { status: 'incomplete', errors: [] }
    if (reason !== 'content_filter' || this.pictures > 0) return { status: 'completed', errors: [] }
    const message = this.#explanation ?? `The image was blocked: ${this.#reason}.`
    return { status: 'failed', errors: [{ code: 'content_blocked', message }] }
  }

  #readCandidate(candidate: Record<string, unknown>): OutputBlock[] {
    this.failure = brokenCandidate(candidate)
    if (this.failure !== undefined) return []
    this.#reason = textOf(candidate['finishReason']) ?? this.#reason
    this.#explanation = textOf(candidate['finishMessage']) ?? this.#explanation
    const blocks = partsOf(candidate).flatMap(blockOf)
    this.pictures += blocks.filter((block) => block.type === 'image').length
    return blocks
  }
}

function blockOf({ text, inlineData, thought }: Record<string, unknown>): OutputBlock[] {
  if (thought === true) return []
  if (typeof text === 'string' && text !== '') return [{ type: 'text', text }]
  if (!isJsonObject(inlineData)) return []
  const { data, mimeType } = inlineData
  if (typeof data !== 'string' || data === '') return []
  return [{ type: 'image', mime_type: textOf(mimeType) ?? 'image/png', data }]
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Members of an interaction that the gateway adds to answers of `generateContent`. */
export interface GeneratedInteraction {
  readonly id?: string
  readonly object: 'interaction'
  readonly model: string
  /** ISO 8601 in whole seconds. */
  readonly created: string
}

/** Returns the members of an answer that is not stored: its id is new and cannot be continued. */
export function generatedInteraction(call: VendorCall<InteractionRequest>): GeneratedInteraction {
  const id = call.conversation?.freshId
  return {
    ...(id === undefined ? {} : { id }),
    object: 'interaction',
    model: call.publicModel,
    created: `${new Date(call.nowMs).toISOString().slice(0, 19)}Z`,
  }
}
