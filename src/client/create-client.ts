import { type BinaryAnswer, binaryAnswer, decodedVectors, type EmbeddingsAnswer } from './answers.ts'
import { completionStream } from './chat-types.ts'
import { listed } from './client-error.ts'
import type { CallOptions, ClientOptions } from './client-options.ts'
import { type Call, Connection, type OpenResponse } from './connection.ts'
import type { ClientModel, GatewayClient, VideoReferenceId as Reference } from './gateway-client.ts'
import { chatStream, imageStream, messageStream, responseStream, speechStream, transcriptionStream } from './streams.ts'
import { fileForm, imageEditForm, transcriptionForm } from './upload.ts'
import { verifyWebhook } from './verify-webhook.ts'
import { waitForVideo } from './video-task.ts'

const PICTURES = '/images/generations'
const EDITS = '/images/edits'
const SPEECH = '/audio/speech'
const TRANSCRIPTIONS = '/audio/transcriptions'
const VIDEOS = '/videos/generations'
const RESPONSES = '/responses'
const FILES = '/files'
const BATCHES = '/batches'
const MESSAGES = '/messages'
const MESSAGE_BATCHES = '/messages/batches'
const CANCEL = '/cancel'

/** Paths for which vendors are paid even if the answer is lost. Videos are not included: a repeated key returns the same task. */
const PAID_JOBS: ReadonlySet<string> = new Set([PICTURES, EDITS, SPEECH])

/** Formats of transcripts other than JSON. */
const TEXT_FORMATS: ReadonlySet<string | undefined> = new Set(['text', 'srt', 'vtt'])

/** While waiting for a video, a restart of the gateway of about 40 seconds is tolerated. */
const MAX_POLL_RETRIES = 8

/**
 * Answer whose type follows from the request, by the client's interface. `never` is assignable to all of them, so no assertion is
 * needed.
 */
type TypedByRequest = Promise<never>

/**
 * Creates a client.
 * @throws TypeError for an unknown option, and if the base URL is not http or https, or the key is not a valid header value.
 */
export function createClient(options: ClientOptions): GatewayClient {
  const connection = new Connection(options)
  const send = (method: Call['method'], path: string, callOptions: CallOptions | undefined): TypedByRequest =>
    connection.json<never>({ method, path, options: callOptions })
  const get = (path: string, callOptions: CallOptions | undefined): TypedByRequest => send('GET', path, callOptions)
  const posted = (path: string, body: object, callOptions: CallOptions | undefined): Call => {
    return { method: 'POST', path, body, isPaidJob: PAID_JOBS.has(path), options: callOptions }
  }
  const post = (...call: Parameters<typeof posted>): TypedByRequest => connection.json<never>(posted(...call))
  /** Creates a method that sends only the id of an object, such as `cancel`. */
  const byId =
    (method: Call['method'], path: string, action = '') =>
    (reference: Reference, callOptions?: CallOptions): TypedByRequest =>
      send(method, pathOf(path, reference) + action, callOptions)
  /** Creates a method that returns a page of objects. */
  const pageOf =
    (path: string) =>
    (page: object = {}, callOptions?: CallOptions): TypedByRequest =>
      get(path + queryOf(page), callOptions)
  const contentOf =
    (path: string, content = '/content') =>
    async (reference: Reference, options?: CallOptions): Promise<BinaryAnswer> =>
      binaryAnswer(await connection.open({ method: 'GET', path: pathOf(path, reference) + content, options }))
  /** Methods that batches of all kinds have. */
  const batchesAt = (path: string) => ({
    create: (request: object, callOptions?: CallOptions) => post(path, request, callOptions),
    retrieve: byId('GET', path),
    list: pageOf(path),
    cancel: byId('POST', path, CANCEL),
  })
  const resultsOf = contentOf(MESSAGE_BATCHES, '/results')
  const open = (...call: Parameters<typeof posted>): Promise<OpenResponse> => connection.open(posted(...call))
  /** Creates a method whose answer is a stream if the request has `stream: true`. */
  const createAt =
    (path: string, streamOf: (answer: OpenResponse) => unknown) =>
    async (request: { readonly stream?: unknown }, callOptions?: CallOptions): TypedByRequest =>
      request.stream === true
        ? (streamOf(await open(path, request, callOptions)) as never)
        : post(path, request, callOptions)

  return {
    chat: { completions: { create: createAt('/chat/completions', chatStream) } },
    completions: { create: createAt('/completions', completionStream) },
    images: {
      generate: createAt(PICTURES, imageStream),
      edit: async (request, callOptions) => {
        const form = await imageEditForm(request)
        return request.stream === true
          ? (imageStream(await open(EDITS, form, callOptions)) as never)
          : post(EDITS, form, callOptions)
      },
    },
    videos: {
      generate: (request, callOptions) => post(VIDEOS, request, callOptions),
      get: byId('GET', VIDEOS),
      list: pageOf(VIDEOS),
      cancel: byId('POST', VIDEOS, CANCEL),
      wait(video, waitOptions = {}) {
        const maxRetries = options.maxRetries ?? MAX_POLL_RETRIES
        const poll = (signal: AbortSignal) => get(pathOf(VIDEOS, video), { signal, maxRetries })
        return waitForVideo({ id: idOf(video), poll }, connection.clock, waitOptions)
      },
      content: contentOf(VIDEOS),
    },
    embeddings: {
      create: async (request, callOptions) => {
        const call = posted('/embeddings', request, callOptions)
        const { body, requestId } = await connection.jsonWithId<EmbeddingsAnswer<number[] | string>>(call)
        return decodedVectors(body, requestId) as never
      },
    },
    moderations: { create: (request, callOptions) => post('/moderations', request, callOptions) },
    rerank: (request, callOptions) => post('/rerank', request, callOptions),
    audio: {
      speech: {
        create: async (request, callOptions) => {
          const answer = await open(SPEECH, request, callOptions)
          return (request.stream_format === 'sse' ? speechStream(answer) : binaryAnswer(answer)) as never
        },
      },
      transcriptions: {
        async create(request, callOptions) {
          const form = await transcriptionForm(request)
          if (request.stream === true) {
            return transcriptionStream(await open(TRANSCRIPTIONS, form, callOptions)) as never
          }
          if (!TEXT_FORMATS.has(request.response_format)) return post(TRANSCRIPTIONS, form, callOptions)
          return (await connection.text(posted(TRANSCRIPTIONS, form, callOptions))) as never
        },
      },
    },
    messages: {
      create: (request, callOptions) => post(MESSAGES, request, callOptions),
      stream: async (request, callOptions) =>
        messageStream(await open(MESSAGES, { ...request, stream: true }, callOptions)),
      countTokens: (request, callOptions) => post(`${MESSAGES}/count_tokens`, request, callOptions),
      batches: {
        ...batchesAt(MESSAGE_BATCHES),
        delete: byId('DELETE', MESSAGE_BATCHES),
        results: (batch, callOptions) => jsonLines(() => resultsOf(batch, callOptions)),
      },
    },
    responses: {
      create: (request, callOptions) => post(RESPONSES, request, callOptions),
      stream: async (request, callOptions) =>
        responseStream(await open(RESPONSES, { ...request, stream: true }, callOptions)),
      retrieve: byId('GET', RESPONSES),
      async replay(response, startingAfter, callOptions) {
        const path = `${pathOf(RESPONSES, response)}${queryOf({ stream: true, starting_after: startingAfter })}`
        return responseStream(await connection.open({ method: 'GET', path, options: callOptions }))
      },
      cancel: byId('POST', RESPONSES, CANCEL),
      delete: byId('DELETE', RESPONSES),
      inputItems: (response, page = {}, callOptions) =>
        get(`${pathOf(RESPONSES, response)}/input_items${queryOf(page)}`, callOptions),
      countTokens: (request, callOptions) => post(`${RESPONSES}/input_tokens`, request, callOptions),
    },
    files: {
      create: async (upload, callOptions) => post(FILES, await fileForm(upload), callOptions),
      retrieve: byId('GET', FILES),
      list: pageOf(FILES),
      delete: byId('DELETE', FILES),
      content: contentOf(FILES),
    },
    batches: batchesAt(BATCHES),
    estimate: (request, callOptions) => post('/estimate', request, callOptions),
    models: {
      async list(callOptions) {
        const { body, requestId } = await connection.jsonWithId<{ readonly data: readonly ClientModel[] }>({
          method: 'GET',
          path: '/models',
          options: callOptions,
        })
        return listed(body.data, requestId)
      },
    },
    webhooks: { verify: verifyWebhook },
    account: { balance: (callOptions) => get('/account', callOptions) },
  }
}

function idOf(reference: Reference): string {
  return typeof reference === 'string' ? reference : reference.id
}

function pathOf(path: string, reference: Reference): string {
  return `${path}/${encodeURIComponent(idOf(reference))}`
}

/** Returns a query string of the parameters that are set. */
function queryOf(parameters: object): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/**
 * Yields the values of an answer with one JSON value per line. The request is sent when iteration starts.
 * @throws ClientError if the answer breaks off.
 */
async function* jsonLines<Value>(ask: () => Promise<BinaryAnswer>): AsyncIterable<Value> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of await ask()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) yield JSON.parse(line) as Value
  }
  if (rest !== '') yield JSON.parse(rest) as Value
}
