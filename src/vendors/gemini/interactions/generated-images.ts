import { Buffer } from 'node:buffer'
import { isJsonObject, nonEmptyText, parseVendorJson } from '../../../core/json.ts'
import { type Usage, usedOf } from '../../../core/usage.ts'
import { EventDecoder, type EventLines } from '../../../endpoints/event-reader.ts'
import {
  type InteractionBlock,
  type InteractionRequest,
  imageSize,
  pictureTokens,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import { joinChunks } from '../../../wire/chunks.ts'
import { SSE_DONE, sseEvent } from '../../../wire/sse.ts'
import { redactGoogleKeys } from '../../shared/google.ts'
import { unsupportedParameter } from '../../shared/invalid-response.ts'
import type { AnswerBody, StreamTransform, VendorCall, VendorFailure, WireRequest } from '../../vendor.ts'
import {
  apiRequestHead,
  brokenCandidate,
  type GeminiPart,
  type GenerateContentRequest,
  type GenerationConfig,
  responseFailure,
} from '../api-request.ts'
import { BareJsonTail, blocksPrompt, finishReason, isKnownReason, partsOf } from '../chat-from-wire.ts'
import { modelAbilities, reasoningToWire } from '../model-abilities.ts'
import { generatedImageUsage, interactionUsage, usageSoFar } from '../usage-from.ts'
import { refuseVendorFiles } from './interaction-to-wire.ts'

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
type OutputBlock =
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
class GeneratedImageReader {
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
      this.#explanation = nonEmptyText(feedback['blockReasonMessage'])
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
    this.#reason = nonEmptyText(candidate['finishReason']) ?? this.#reason
    this.#explanation = nonEmptyText(candidate['finishMessage']) ?? this.#explanation
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
  return [{ type: 'image', mime_type: nonEmptyText(mimeType) ?? 'image/png', data }]
}

/** Members of an interaction that the gateway adds to answers of `generateContent`. */
interface GeneratedInteraction {
  readonly id?: string
  readonly object: 'interaction'
  readonly model: string
  /** ISO 8601 in whole seconds. */
  readonly created: string
}

/** Returns the members of an answer that is not stored: its id is new and cannot be continued. */
function generatedInteraction(call: VendorCall<InteractionRequest>): GeneratedInteraction {
  const id = call.conversation?.freshId
  return {
    ...(id === undefined ? {} : { id }),
    object: 'interaction',
    model: call.publicModel,
    created: `${new Date(call.nowMs).toISOString().slice(0, 19)}Z`,
  }
}

/**
 * Writes a stream of `streamGenerateContent` as the events of an interaction (Interactions API, "Streaming"): one `model_output`
 * step whose deltas are texts and whole images. The vendor's stream has no end mark, so the answer is complete if its body ends
 * after a finish reason.
 */
export class GeneratedImageStream extends EventDecoder implements StreamTransform {
  hasContent = false
  isComplete = false
  isRefusal = false
  outputBytesSeen = 0
  /** Returned chunks contain only whole events. */
  readonly atBoundary = true
  readonly #reader: GeneratedImageReader
  readonly #interaction: GeneratedInteraction
  readonly #pictureTokens: number
  readonly #apiKey: string
  readonly #tail = new BareJsonTail()
  #text = ''
  #hasBegun = false
  #hasStep = false

  constructor(call: VendorCall<InteractionRequest>) {
    super()
    this.#reader = new GeneratedImageReader(call.apiKey)
    this.#interaction = generatedInteraction(call)
    this.#pictureTokens = pictureTokens(call.model, imageSize(call.request, call.model))
    this.#apiKey = call.apiKey
  }

  get usage(): Usage | undefined {
    const usage = generatedImageUsage(this.#reader.usageMetadata)
    const { pictures } = this.#reader
    return this.isComplete ? interactionUsage(usage, pictures) : usageSoFar(usage, pictures, this.#pictureTokens)
  }

  override push(chunk: Uint8Array): string | undefined {
    if (!this.isOver) super.push(this.#tail.push(chunk))
    return this.#taken()
  }

  override end(): string | undefined {
    super.end()
    return this.#taken()
  }

  protected override bodyEnded(): undefined {
    const tail = this.#tail.end()
    if (tail !== undefined) this.#readJson(tail)
    if (this.failure === undefined && this.#reader.isFinished) this.#text += this.#close()
  }

  protected override readEvent(event: EventLines): void {
    // Proxies for several dialects add OpenAI's end mark to every stream.
    if (event.text !== '' && !event.isEndMark) this.#readJson(event.text)
  }

  #readJson(json: string): void {
    const response = parseVendorJson(json)
    if (response === undefined) {
      this.failInvalid('The vendor sent an event that is not JSON.')
      return
    }
    const blocks = this.#reader.read(response)
    if (this.#reader.failure !== undefined) this.fail(this.#reader.failure)
    else this.#text += this.#open() + blocks.map((block) => this.#delta(block)).join('')
  }

  #taken(): string | undefined {
    const text = this.#text
    this.#text = ''
    return text === '' ? undefined : text
  }

  #open(): string {
    if (this.#hasBegun) return ''
    this.#hasBegun = true
    return event('interaction.created', { interaction: { ...this.#interaction, status: 'in_progress' } })
  }

  #delta(block: OutputBlock): string {
    this.hasContent = true
    if (block.type === 'text') this.outputBytesSeen += Buffer.byteLength(block.text)
    const start = this.#hasStep ? '' : event('step.start', { index: 0, step: { type: 'model_output' } })
    this.#hasStep = true
    return start + event('step.delta', { index: 0, delta: block })
  }

  #close(): string {
    const { status, errors } = this.#reader.ending()
    const usage = generatedImageUsage(this.#reader.usageMetadata)
    this.isComplete = true
    this.hasContent = true
    // Output that the caller received was generated, and is charged.
    this.isRefusal = status === 'failed' && !this.#hasStep && !this.#reader.isCharged
    const interaction = {
      ...this.#interaction,
      status,
      ...(errors.length === 0 ? {} : { errors }),
      ...(usage === undefined ? {} : { usage }),
    }
    const stop = this.#hasStep ? event('step.stop', { index: 0 }) : ''
    return stop + redactGoogleKeys(event('interaction.completed', { interaction }), [this.#apiKey]) + SSE_DONE
  }
}

function event(type: string, payload: object): string {
  return sseEvent(type, JSON.stringify({ ...payload, event_type: type }))
}

/** Fields with an equivalent, or without an effect beyond the default. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'system_instruction',
  'response_format',
  'generation_config',
  'stream',
])
const MAPPED_FORMAT_FIELDS: ReadonlySet<string> = new Set(['type', 'image_size', 'aspect_ratio'])

/** Settings with the same meaning under another name (Gemini API, "GenerationConfig"). */
const SAME_SETTINGS: ReadonlyMap<string, string> = new Map([
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['seed', 'seed'],
  ['max_output_tokens', 'maxOutputTokens'],
  ['stop_sequences', 'stopSequences'],
])

/**
 * Writes an interaction as `generateContent`, or `streamGenerateContent` for streams (Gemini API, "Image generation"). Fields
 * without an equivalent are dropped and reported.
 * @param basePath Path up to and including the version: `/v1beta`.
 * @throws GatewayError `unsupported_parameter` naming `previous_interaction_id`, because this API keeps no history, or an
 *   image that is stored at the vendor.
 */
export function generatedImageToWire(call: VendorCall<InteractionRequest>, basePath: string): WireRequest {
  const { request, model, stream } = call
  if (request.previous_interaction_id !== undefined) {
    const message = 'previous_interaction_id: interactions cannot be continued here. Send the images again.'
    throw unsupportedParameter('previous_interaction_id', message)
  }
  refuseVendorFiles(request)
  const dropped = droppedFields(request)
  const { system_instruction } = request
  const body: GenerateContentRequest = {
    ...(system_instruction === undefined ? {} : { systemInstruction: { parts: [{ text: system_instruction }] } }),
    contents: [{ role: 'user', parts: inputParts(request.input) }],
    generationConfig: generationConfigOf(call, (field) => dropped.push(field)),
  }
  const method = stream ? 'streamGenerateContent' : 'generateContent'
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method, apiKey: call.apiKey }),
    body: JSON.stringify(body),
    dropped,
  }
}

function inputParts(input: InteractionRequest['input']): GeminiPart[] {
  return typeof input === 'string' ? [{ text: input }] : input.map(partOf)
}

function partOf(block: InteractionBlock): GeminiPart {
  if (block.type === 'text') return { text: block.text }
  const { mime_type, data, uri } = block
  if (uri !== undefined)
    return { fileData: { ...(mime_type === undefined ? {} : { mimeType: mime_type }), fileUri: uri } }
  return { inlineData: { mimeType: mime_type ?? '', data: data ?? '' } }
}

function generationConfigOf(
  { request, model }: VendorCall<InteractionRequest>,
  report: (field: string) => void,
): GenerationConfig {
  const { response_format: format, generation_config: settings } = request
  const config: GenerationConfig = {
    // Without a format, interactions return text with the image.
    responseModalities: format === undefined ? ['TEXT', 'IMAGE'] : ['IMAGE'],
  }
  const imageConfig = {
    ...(format?.aspect_ratio === undefined ? {} : { aspectRatio: format.aspect_ratio }),
    ...(format?.image_size === undefined ? {} : { imageSize: format.image_size.replace(/^512px$/, '512') }),
  }
  if (Object.keys(imageConfig).length > 0) config.imageConfig = imageConfig
  for (const [name, value] of Object.entries(settings ?? {})) {
    const setting = SAME_SETTINGS.get(name)
    if (setting !== undefined) Object.assign(config, { [setting]: value })
    else if (name !== 'thinking_level') report(`generation_config.${name}`)
  }
  const thinkingConfig = thinkingConfigOf(settings?.thinking_level, model.upstream, report)
  return thinkingConfig === undefined ? config : { ...config, thinkingConfig }
}

/** Thoughts are not requested, because they would include draft images. */
function thinkingConfigOf(
  level: string | undefined,
  upstream: string,
  report: (field: string) => void,
): GenerationConfig['thinkingConfig'] {
  if (level === undefined) return undefined
  const requested = level === 'minimal' || level === 'low' || level === 'medium' || level === 'high' ? level : undefined
  const plan = requested === undefined ? undefined : reasoningToWire(requested, modelAbilities(upstream).thinking)
  if (plan === undefined || plan.changed) report('generation_config.thinking_level')
  if (plan?.config === undefined) return undefined
  const { includeThoughts: _shown, ...config } = plan.config
  return config
}

function droppedFields(request: InteractionRequest): string[] {
  const fields = Object.entries(request)
    .filter(([name, value]) => !MAPPED_FIELDS.has(name) && isAsked(name, value))
    .map(([name]) => name)
  const format: unknown = request.response_format
  const formatFields = isJsonObject(format) ? Object.keys(format) : []
  return [
    ...fields,
    ...formatFields.filter((name) => !MAPPED_FORMAT_FIELDS.has(name)).map((name) => `response_format.${name}`),
  ]
}

/** This API never stores answers, so `store: false` is always met. */
function isAsked(name: string, value: unknown): boolean {
  return value !== undefined && value !== null && !((name === 'store' || name === 'background') && value === false)
}
