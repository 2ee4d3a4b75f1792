import type { WireRequest } from '../vendor.ts'
import type { OpenApiSchema } from './schema-to-wire.ts'

/**
 * Headers of every call. The key goes in a header and never in the query, which proxies would log. Compression is not
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

/** Where the API is, and which of its two varieties it is: that for developers, or that of a cloud. */
export interface GeminiApi {
  /** Path before the models: `/v1beta`. */
  readonly basePath: string
  /** False in the cloud's: function calls and their responses have no ids, and a request with one is refused. */
  readonly hasCallIds: boolean
  /** False in the cloud's: the body of a count is the counted request itself. */
  readonly wrapsCounts: boolean
}

/** Path and headers of one call of a model's method. */
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
    // Without alt=sse a stream is one growing JSON array.
    path: `${options.basePath}/${resource}:${options.method}${streams ? '?alt=sse' : ''}`,
    headers: apiHeaders(options.apiKey, streams),
  }
}

/** The model's resource name: `models/gemini-2.5-flash`; a name that has a collection (`tunedModels/…`) stays. */
export function modelResource(model: string): string {
  return model.includes('/') ? model : `models/${model}`
}

/** The bare id of a model: `gemini-2.5-flash`. */
export function modelId(model: string): string {
  return model.startsWith('models/') ? model.slice('models/'.length) : model
}

/** One part of a turn. Exactly one of the payload fields is set. */
export interface GeminiPart {
  text?: string
  /** True for reasoning. */
  thought?: boolean
  /** Opaque state of the model's reasoning, base64; goes back on the same part. */
  thoughtSignature?: string
  inlineData?: { mimeType: string; data: string }
  fileData?: { mimeType?: string; fileUri: string }
  functionCall?: { id?: string; name: string; args: Record<string, unknown> }
  functionResponse?: { id?: string; name: string; response: Record<string, unknown> }
}

/** One turn. Function responses are in turns of the user. */
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

/** Whether and what the model may call. */
export interface FunctionCallingConfig {
  mode: 'AUTO' | 'NONE' | 'ANY' | 'VALIDATED'
  allowedFunctionNames?: string[]
}

/** How the model thinks: a level (3.x) or a budget of tokens (2.5), never both. */
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
  /** What an image model answers with. */
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
