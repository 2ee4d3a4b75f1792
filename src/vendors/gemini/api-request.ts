import { ERROR_TABLE } from '../../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { retryAfterSeconds } from '../../wire/headers.ts'
import { type GoogleError, googleErrorFrom, googleFailure, googleKindByStatus } from '../shared/google.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import type { VendorFailure, WireAnswer, WireRequest } from '../vendor.ts'
import type { OpenApiSchema } from './schema-to-wire.ts'

/**
 * Returns the headers of every call. The key is in a header and never in the query, which proxies would log. Compression is not
 * requested, because usage is read from the bytes.
 */
export function apiHeaders(apiKey: string, streams: boolean): string[] {
  return [
    ...(apiKey === '' ? [] : ['x-goog-api-key', apiKey]),
    'content-type',
    'application/json',
    'accept',
    streams ? 'text/event-stream' : 'application/json',
    'accept-encoding',
    'identity',
  ]
}

/** Path of the API and its variant: the developer API or the cloud's API. */
export interface GeminiApi {
  /** Path before the models: `/v1beta`. */
  readonly basePath: string
  /** Whether function calls and responses have ids. The cloud's API rejects requests with ids. */
  readonly hasCallIds: boolean
  /** Whether the counted request is wrapped. In the cloud's API it is the whole body. */
  readonly wrapsCounts: boolean
}

/** Returns path and headers of a call to a model's method. */
export function apiRequestHead(options: {
  /** Path before the models: `/v1beta`. */
  readonly basePath: string
  /** The vendor's id of the model, with or without `models/`. */
  readonly model: string
  readonly method:
    | 'generateContent'
    | 'streamGenerateContent'
    | 'countTokens'
    | 'batchEmbedContents'
    | 'embedContent'
    | 'predict'
  readonly apiKey: string
}): Pick<WireRequest, 'path' | 'headers'> {
  const streams = options.method === 'streamGenerateContent'
  const resource = modelResource(options.model).split('/').map(encodeURIComponent).join('/')
  return {
    // Without alt=sse, a stream is one growing JSON array.
    path: `${options.basePath}/${resource}:${options.method}${streams ? '?alt=sse' : ''}`,
    headers: apiHeaders(options.apiKey, streams),
  }
}

/** Returns the resource name of a model: `models/gemini-2.5-flash`. A name with a collection (`tunedModels/…`) stays unchanged. */
export function modelResource(model: string): string {
  return model.includes('/') ? model : `models/${model}`
}

/** Returns the bare id of a model: `gemini-2.5-flash`. */
export function modelId(model: string): string {
  return model.startsWith('models/') ? model.slice('models/'.length) : model
}

/** One part of a turn. Exactly one of the payload fields is set. */
export interface GeminiPart {
  text?: string
  /** Whether the part is reasoning. */
  thought?: boolean
  /** Opaque state of the model's reasoning in base64, to return on the same part. */
  thoughtSignature?: string
  inlineData?: { mimeType: string; data: string }
  fileData?: { mimeType?: string; fileUri: string }
  functionCall?: { id?: string; name: string; args: Record<string, unknown> }
  functionResponse?: { id?: string; name: string; response: Record<string, unknown> }
}

/** One turn. Function responses are in user turns. */
export interface GeminiContent {
  role: 'user' | 'model'
  parts: GeminiPart[]
}

/** A function the model may call. `parameters` is absent for a function without arguments. */
export interface FunctionDeclaration {
  name: string
  description?: string
  parameters?: OpenApiSchema
}

/** Whether the model may or must call functions, and which. */
export interface FunctionCallingConfig {
  mode: 'AUTO' | 'NONE' | 'ANY' | 'VALIDATED'
  allowedFunctionNames?: string[]
}

/** Level (3.x) or token budget (2.5) of the model's thinking, never both. */
export interface ThinkingConfig {
  thinkingLevel?: 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH' | 'XHIGH'
  thinkingBudget?: number
  includeThoughts?: boolean
}

/** Settings of one generation. */
export interface GenerationConfig {
  maxOutputTokens?: number
  stopSequences?: string[]
  candidateCount?: number
  seed?: number
  temperature?: number
  topP?: number
  presencePenalty?: number
  frequencyPenalty?: number
  responseMimeType?: string
  responseJsonSchema?: Record<string, unknown>
  responseSchema?: OpenApiSchema
  responseLogprobs?: boolean
  logprobs?: number
  thinkingConfig?: ThinkingConfig
  /** Kinds of output of an image model. */
  responseModalities?: ('TEXT' | 'IMAGE')[]
  imageConfig?: { aspectRatio?: string; imageSize?: string }
}

/** Body of `generateContent` and `streamGenerateContent`. */
export interface GenerateContentRequest {
  systemInstruction?: { parts: GeminiPart[] }
  contents: GeminiContent[]
  tools?: { functionDeclarations: FunctionDeclaration[] }[]
  toolConfig?: { functionCallingConfig: FunctionCallingConfig }
  generationConfig?: GenerationConfig
}

/**
 * Matches the vendor's error for continuing a missing interaction. It is undocumented: the text mentions an interaction, and no
 * model.
 */
const MENTIONS_INTERACTION = /interaction/i
const MENTIONS_MODEL = /\bmodels?\b/i
const SAYS_MISSING =
  /\b(?:not (?:be )?found|not find|no such|not exist|unknown|expired|deleted)\b|\binvalid previous_interaction_id\b/i
const LOST_INTERACTION = 'interaction_not_found'

/** Finish reasons that make the model's output unusable. A retry may succeed. */
const BROKEN_REASONS: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
])

/**
 * Reads a non-2xx answer, or a 2xx answer with an error or an unusable answer.
 * @param apiKeys Removed from texts anywhere, like anything that looks like a Google key.
 */
export function errorFrom(answer: WireAnswer, nowMs: number, apiKeys: readonly string[]): VendorFailure {
  const value = parseVendorJson(new TextDecoder().decode(answer.body))
  const error = googleErrorFrom(value)
  const isSuccess = answer.status >= 200 && answer.status < 300
  if (error !== undefined) {
    const failure = failureOf(error, isSuccess ? (error.httpStatus ?? 0) : answer.status, apiKeys)
    if (failure.kind === 'caller' || failure.retryAfterSeconds !== undefined) return failure
    return { ...failure, retryAfterSeconds: retryAfterSeconds(answer.headers, nowMs) }
  }
  if (isSuccess) return brokenAnswer(value) ?? invalidResponse('the vendor sent an answer that cannot be read')
  return {
    kind: googleKindByStatus(answer.status),
    status: answer.status,
    message: `the vendor answered HTTP ${answer.status} without an error object`,
    retryAfterSeconds: retryAfterSeconds(answer.headers, nowMs),
  }
}

/** Converts an error object to a failure. `status` is that of the answer, or 0 inside a stream. */
export function failureOf(error: GoogleError, status: number, apiKeys: readonly string[] = []): VendorFailure {
  if (isLostInteraction(error, error.httpStatus ?? status)) {
    // Uses the gateway's own error for an unknown id, because the vendor's text would name an id that the caller does not know.
    const own = ERROR_TABLE[LOST_INTERACTION]
    return {
      kind: 'caller',
      status: own.status,
      message: own.message,
      code: LOST_INTERACTION,
      param: 'previous_interaction_id',
    }
  }
  return googleFailure(error, status, apiKeys)
}

/** Returns the failure in a response object of `generateContent`: an error, or a value that is not an object. */
export function responseFailure(response: unknown, apiKey: string): VendorFailure | undefined {
  const error = googleErrorFrom(response)
  if (error !== undefined) return failureOf(error, 0, [apiKey])
  return isJsonObject(response) ? undefined : invalidResponse('the vendor sent a value that is not a response object')
}

/** Returns the failure of a candidate whose stop reason makes its content unusable, if any. */
export function brokenCandidate(candidate: unknown): VendorFailure | undefined {
  if (!isJsonObject(candidate)) return undefined
  const { finishReason: reason, finishMessage } = candidate
  if (typeof reason !== 'string' || !BROKEN_REASONS.has(reason)) return undefined
  const explanation = typeof finishMessage === 'string' ? `: ${finishMessage}` : ''
  return { ...invalidResponse(`the model stopped with ${reason}${explanation}`), code: reason }
}

function brokenAnswer(value: unknown): VendorFailure | undefined {
  const candidates = isJsonObject(value) ? value['candidates'] : undefined
  return (Array.isArray(candidates) ? candidates : []).map(brokenCandidate).find((failure) => failure !== undefined)
}

function isLostInteraction({ message }: GoogleError, status: number): boolean {
  if (status !== 404 && status !== 400 && status !== 0) return false
  return MENTIONS_INTERACTION.test(message) && SAYS_MISSING.test(message) && !MENTIONS_MODEL.test(message)
}
