import { binaryAnswer } from './binary-answer.ts'
import { chatStream } from './chat-stream.ts'
import type { CallOptions, ClientOptions } from './client-options.ts'
import { Connection, type OpenAnswer } from './connection.ts'
import { decodedVectors, type EmbeddingsAnswer } from './embedding-answer.ts'
import type { ClientModel, GatewayClient, VideoPage, VideoReferenceId } from './gateway-client.ts'
import { imageEditForm } from './image-edit-form.ts'
import { messageStream } from './message-stream.ts'
import type { VideoTask } from './video-task.ts'
import { waitForVideo } from './wait-for-video.ts'

const VIDEOS = '/videos/generations'

/**
 * The type of such an answer follows from the request, by the interface of the client; the code here only passes it on. It is
 * `never`, which stands in every place, so that the interface needs no assertion.
 */
type TypedByRequest = Promise<never>

/**
 * Makes a client.
 * @throws TypeError when the base URL is no URL.
 */
export function createClient(options: ClientOptions): GatewayClient {
  const connection = new Connection(options)
  const get = (path: string, callOptions: CallOptions | undefined): TypedByRequest =>
    connection.json<never>({ method: 'GET', path, options: callOptions })
  const post = (path: string, body: object, callOptions: CallOptions | undefined): TypedByRequest =>
    connection.json<never>({ method: 'POST', path, body, options: callOptions })
  const open = (path: string, body: object, callOptions: CallOptions | undefined): Promise<OpenAnswer> =>
    connection.open({ method: 'POST', path, body, options: callOptions })

  return {
    chat: {
      completions: {
        create: async (request, callOptions) =>
          request.stream === true
            ? (chatStream(await open('/chat/completions', request, callOptions)) as never)
            : post('/chat/completions', request, callOptions),
      },
    },
    images: {
      generate: (request, callOptions) => post('/images/generations', request, callOptions),
      edit: async (request, callOptions) => post('/images/edits', await imageEditForm(request), callOptions),
    },
    videos: {
      generate: (request, callOptions) => post(VIDEOS, request, callOptions),
      get: (video, callOptions) => get(videoPath(video), callOptions),
      list: (page = {}, callOptions) => get(`${VIDEOS}${queryOf(page)}`, callOptions),
      cancel: (video, callOptions) =>
        connection.json<VideoTask>({ method: 'POST', path: `${videoPath(video)}/cancel`, options: callOptions }),
      wait(video, waitOptions = {}) {
        const { signal } = waitOptions
        const look = () => get(videoPath(video), signal === undefined ? {} : { signal })
        return waitForVideo(look, connection.clock, waitOptions)
      },
      content: async (video, callOptions) =>
        binaryAnswer(
          await connection.open({ method: 'GET', path: `${videoPath(video)}/content`, options: callOptions }),
        ),
    },
    embeddings: {
      create: async (request, callOptions) => {
        const answer: EmbeddingsAnswer<number[] | string> = await post('/embeddings', request, callOptions)
        return decodedVectors(answer) as never
      },
    },
    audio: {
      speech: {
        create: async (request, callOptions) => binaryAnswer(await open('/audio/speech', request, callOptions)),
      },
    },
    messages: {
      create: (request, callOptions) => post('/messages', request, callOptions),
      stream: async (request, callOptions) =>
        messageStream(await open('/messages', { ...request, stream: true }, callOptions)),
      countTokens: (request, callOptions) => post('/messages/count_tokens', request, callOptions),
    },
    models: {
      async list(callOptions) {
        const { data }: { readonly data: readonly ClientModel[] } = await get('/models', callOptions)
        return data
      },
    },
    account: { balance: (callOptions) => get('/account', callOptions) },
  }
}

function videoPath(video: VideoReferenceId): string {
  return `${VIDEOS}/${encodeURIComponent(typeof video === 'string' ? video : video.id)}`
}

function queryOf(page: VideoPage): string {
  const given = Object.entries(page).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
