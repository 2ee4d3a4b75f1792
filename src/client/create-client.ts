import type { ChatCompletion } from '../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../endpoints/embeddings/embeddings-request.ts'
import { type ChatChunk, type ChatStream, chatStream } from './chat-stream.ts'
import { clientError } from './client-error.ts'

/** Options of {@link createClient}. */
export interface ClientOptions {
  /** Where the gateway is mounted, with its `/v1`: `http://127.0.0.1:8787/v1`. */
  readonly baseURL: string
  /** Sent as bearer token. Not needed in process, where the host vouches for the caller. */
  readonly apiKey?: string
  /** Replaces the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>
}

/** The answer of an embedding call with JSON numbers or base64 text, as asked for. */
export interface EmbeddingsAnswer {
  readonly object: 'list'
  readonly model: string
  readonly data: readonly {
    readonly object: 'embedding'
    readonly index: number
    readonly embedding: number[] | string
  }[]
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number }
}

/** A model as the gateway lists it. */
export interface ClientModel {
  readonly id: string
  readonly owned_by: string
  readonly display_name: string
  readonly kinds: readonly string[]
  readonly available: boolean
}

/** A client of one gateway. Every method throws a `GatewayError` when the gateway answers with an error. */
export interface GatewayClient {
  readonly chat: {
    readonly completions: {
      create(request: ChatRequest & { stream: true }, options?: CallOptions): Promise<ChatStream>
      create(request: ChatRequest & { stream?: false | null }, options?: CallOptions): Promise<ChatCompletion>
    }
  }
  readonly embeddings: { create(request: EmbeddingsRequest, options?: CallOptions): Promise<EmbeddingsAnswer> }
  readonly models: { list(options?: CallOptions): Promise<readonly ClientModel[]> }
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call. */
  readonly signal?: AbortSignal
  readonly idempotencyKey?: string
}

/** Makes a client. */
export function createClient(options: ClientOptions): GatewayClient {
  const send = options.fetch ?? ((request: Request) => fetch(request))
  const baseURL = options.baseURL.replace(/\/+$/, '')

  const call = async (
    method: string,
    path: string,
    body: unknown,
    { signal, idempotencyKey }: CallOptions = {},
  ): Promise<Response> => {
    const headers = new Headers()
    if (options.apiKey !== undefined) headers.set('authorization', `Bearer ${options.apiKey}`)
    if (body !== undefined) headers.set('content-type', 'application/json')
    if (idempotencyKey !== undefined) headers.set('idempotency-key', idempotencyKey)
    const response = await send(
      new Request(`${baseURL}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ?? null,
      }),
    )
    if (!response.ok) throw await clientError(response)
    return response
  }
  const json = async <Answer>(response: Promise<Response>): Promise<Answer> => (await (await response).json()) as Answer

  function createChat(request: ChatRequest & { stream: true }, callOptions?: CallOptions): Promise<ChatStream>
  function createChat(
    request: ChatRequest & { stream?: false | null },
    callOptions?: CallOptions,
  ): Promise<ChatCompletion>
  async function createChat(request: ChatRequest, callOptions?: CallOptions): Promise<ChatStream | ChatCompletion> {
    const answer = call('POST', '/chat/completions', request, callOptions)
    return request.stream === true ? chatStream(await answer) : json<ChatCompletion>(answer)
  }

  return {
    chat: { completions: { create: createChat } },
    embeddings: { create: (request, callOptions) => json(call('POST', '/embeddings', request, callOptions)) },
    models: {
      list: async (callOptions) =>
        (await json<{ data: ClientModel[] }>(call('GET', '/models', undefined, callOptions))).data,
    },
  }
}

export type { ChatChunk, ChatStream }
