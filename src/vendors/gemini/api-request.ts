import type { WireRequest } from '../vendor.ts'
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
