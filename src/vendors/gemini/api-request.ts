/** The parts of one request to the vendor that are the same for every method. */
export interface ApiRequestHead {
  readonly path: string
  readonly headers: readonly string[]
}

/**
 * Headers of every call. The key goes in a header and never in the query, where proxies would log it; compressed answers
 * are not asked for, because usage is read from the bytes.
 */
export function apiHeaders(apiKey: string, streams: boolean): string[] {
  return [
    'x-goog-api-key',
    apiKey,
    'content-type',
    'application/json',
    'accept',
    streams ? 'text/event-stream' : 'application/json',
    'accept-encoding',
    'identity',
  ]
}

/** Path and headers of one call of a model's method. */
export function apiRequestHead(options: {
  /** Path up to and including the version: `/v1beta`. */
  readonly basePath: string
  /** The vendor's id of the model, with or without `models/`. */
  readonly model: string
  readonly method: 'generateContent' | 'streamGenerateContent' | 'batchEmbedContents'
  readonly apiKey: string
}): ApiRequestHead {
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
