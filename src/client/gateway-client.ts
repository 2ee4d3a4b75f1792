import type { ChatCompletion } from '../endpoints/chat/chat-completion.ts'
import type {
  Batch,
  BatchRequest,
  FilePage,
  FileUpload,
  KeptFile,
  ListOf,
  ListPage,
  ObjectReference,
} from './batch-types.ts'
import type { BinaryAnswer } from './binary-answer.ts'
import type { CallOptions } from './client-options.ts'
import type { TextCompletion, TextCompletionRequest, TextCompletionStream } from './completion-types.ts'
import type { EmbeddingsAnswer, VectorOf } from './embedding-answer.ts'
import type {
  MessageBatch,
  MessageBatchList,
  MessageBatchPage,
  MessageBatchRequest,
  MessageBatchResult,
} from './message-batch-types.ts'
import type { Message, MessagePrompt, MessageRequest } from './message-types.ts'
import type { ChatModels, OtherChatRequest } from './models/chat-models.ts'
import type { EmbeddingModels, OtherEmbeddingRequest } from './models/embedding-models.ts'
import type {
  ImageEditModels,
  ImageModels,
  OtherImageAnswer,
  OtherImageEditRequest,
  OtherImageEvent,
  OtherImageRequest,
} from './models/image-models.ts'
import type { AnswerOf, EventOf, ModelId, ModelRequest, RequestOf, StreamOf } from './models/model-request.ts'
import type {
  DefaultModerationModel,
  ModerationAnswer,
  ModerationModels,
  OtherModerationRequest,
} from './models/moderation-models.ts'
import type { OpenAIImageAnswer } from './models/openai-images.ts'
import type { OtherRerankRequest, RerankAnswer, RerankModels } from './models/rerank-models.ts'
import type { OtherSpeechRequest, SpeechModels } from './models/speech-models.ts'
import type {
  OtherTranscriptionRequest,
  TranscriptionAnswerOf,
  TranscriptionFormat,
  TranscriptionModels,
} from './models/transcription-models.ts'
import type { OtherVideoRequest, VideoModels } from './models/video-models.ts'
import type {
  ResponseAnswer,
  ResponseItemList,
  ResponseItemPage,
  ResponsePrompt,
  ResponseReference,
  ResponseRequest,
} from './response-types.ts'
import type {
  ChatStream,
  ImageStream,
  MessageStream,
  ResponseStream,
  SpeechStream,
  TranscriptionStream,
} from './streams.ts'
import type { Upload } from './upload.ts'
import type { ReceivedWebhook, WebhookMessage } from './verify-webhook.ts'
import type { VideoList, VideoTask, WaitOptions } from './video-task.ts'

/** A model as the gateway lists it. */
export interface ClientModel {
  /** What callers write. */
  readonly id: string
  /** Id of the vendor. */
  readonly owned_by: string
  /** For people. */
  readonly display_name: string
  /** What it does; see `ModelKind`. */
  readonly kinds: readonly string[]
  /** False: its vendor is not configured. */
  readonly available: boolean
}

/** The caller's account. Amounts are decimal dollars. */
export interface AccountBalance {
  readonly object: 'account'
  readonly id: string
  /** Without what is held. */
  readonly balance: string
  /** Held for calls and videos in progress. */
  readonly held: string
  /** Used beyond the balance and not paid yet; while it is above zero, requests are refused with `account_in_arrears`. */
  readonly owed: string
  readonly currency: 'USD'
  readonly tier: 'paid' | 'free'
}

/** A request that is asked about. */
export interface EstimatedRequest {
  /** Id or path of its endpoint: `chat`, `/v1/chat/completions`. */
  readonly endpoint: string
  /** Its body, as builders make it. */
  readonly body: object
}

/** What a request would use, hold and cost at most. */
export interface CallEstimate {
  readonly object: 'estimate'
  /** Id of the endpoint. */
  readonly endpoint: string
  /** The requested model, by its public id. */
  readonly model: string
  /** Upper estimate of what it uses, by name: `inputTokens`, `outputTokens`, `images`. */
  readonly usage: Readonly<Record<string, number>>
  /** `off`: nothing would be held or charged. */
  readonly billing: 'on' | 'off'
  /** Decimal dollars; null: billing is off. */
  readonly held: string | null
  readonly currency: 'USD'
  /** Always false: what a call costs is known at its end. */
  readonly exact: false
  /** The models that may answer: the requested one, then its fallbacks. */
  readonly models: readonly string[]
}

/** Which page of videos; the cursors are ids of videos. */
export interface VideoPage {
  /** 1 to 100; default 20. */
  readonly limit?: number
  /** Only videos that are older than this one. */
  readonly after?: string
  /** Only videos that are newer than this one. */
  readonly before?: string
}

/** A video, or its id. */
export type VideoReferenceId = string | { readonly id: string }

/**
 * A client of one gateway. The id of the model narrows the request; unknown ids are accepted. Every method throws a
 * `ClientError` (a `GatewayError`) if the gateway answers with an error or cannot be reached, and the reason of the
 * caller's signal if that ended the call.
 */
export interface GatewayClient {
  /** Chats, whole and streamed. */
  readonly chat: { readonly completions: ChatCompletions }
  /** Completions of texts, such as code with a gap. */
  readonly completions: {
    /** Requests completions; with `stream: true` they come in pieces. */
    create<const Stream extends boolean = false>(
      request: TextCompletionRequest & { readonly stream?: Stream },
      options?: CallOptions,
    ): Promise<Stream extends true ? TextCompletionStream : TextCompletion>
  }
  /** Pictures, and edits of pictures. */
  readonly images: Images
  /** Videos: tasks that are ordered, followed and fetched. */
  readonly videos: Videos
  /** Webhooks that arrive at this program. */
  readonly webhooks: {
    /**
     * Verifies a webhook that arrived, and gives its message. Calls nothing.
     * @throws ClientError `invalid_request` for one that cannot be trusted; TypeError for a secret that is none.
     */
    verify(webhook: ReceivedWebhook): Promise<WebhookMessage>
  }
  /** Vectors of texts. */
  readonly embeddings: {
    /** Makes vectors. With `encoding_format: 'base64'` they are sent as base64 and returned as `Float32Array`. */
    create<const Model extends ModelId<EmbeddingModels>, const Encoding extends 'float' | 'base64' = 'float'>(
      request: ModelRequest<EmbeddingModels, Model, OtherEmbeddingRequest> & { readonly encoding_format?: Encoding },
      options?: CallOptions,
    ): Promise<EmbeddingsAnswer<VectorOf<Encoding>>>
  }
  /** Judgements of texts and pictures. */
  readonly moderations: {
    /** Judges texts and pictures. The categories are those of the model's vendor. */
    create<const Model extends ModelId<ModerationModels> = DefaultModerationModel>(
      request: { readonly model?: Model } & RequestOf<ModerationModels, Model, OtherModerationRequest>,
      options?: CallOptions,
    ): Promise<AnswerOf<ModerationModels, Model, ModerationAnswer>>
  }
  /** Sorts documents by relevance to a query. */
  rerank<const Model extends ModelId<RerankModels>>(
    request: ModelRequest<RerankModels, Model, OtherRerankRequest>,
    options?: CallOptions,
  ): Promise<RerankAnswer>
  /** Speech from text, and text from speech. */
  readonly audio: {
    readonly speech: {
      /**
       * Turns text into speech. The answer can be read while it is generated; with `stream_format: 'sse'` it comes in
       * events.
       */
      create<const Model extends ModelId<SpeechModels>, const Format extends 'audio' | 'sse' = 'audio'>(
        request: ModelRequest<SpeechModels, Model, OtherSpeechRequest> & { readonly stream_format?: Format },
        options?: CallOptions,
      ): Promise<Format extends 'sse' ? SpeechStream : BinaryAnswer>
    }
    readonly transcriptions: {
      /**
       * Writes down what is said in a recording. The formats `text`, `srt` and `vtt` give a text, the others an object; with
       * `stream: true` the text comes in events, of a model that does not stream in the last one.
       */
      create<
        const Model extends ModelId<TranscriptionModels>,
        const Format extends TranscriptionFormat = 'json',
        const Stream extends boolean = false,
      >(
        request: ModelRequest<TranscriptionModels, Model, OtherTranscriptionRequest> & {
          readonly response_format?: Format
          readonly stream?: Stream
        },
        options?: CallOptions,
      ): Promise<Stream extends true ? TranscriptionStream : TranscriptionAnswerOf<Format>>
    }
  }
  /** Chats in Anthropic's dialect. */
  readonly messages: Messages
  /** OpenAI's Responses API. */
  readonly responses: Responses
  /** Files of requests for batches, and of their answers. */
  readonly files: {
    create(upload: FileUpload, options?: CallOptions): Promise<KeptFile>
    retrieve(file: ObjectReference, options?: CallOptions): Promise<KeptFile>
    /** Newest first, at most 10,000. */
    list(page?: FilePage, options?: CallOptions): Promise<ListOf<KeptFile>>
    delete(file: ObjectReference, options?: CallOptions): Promise<{ readonly id: string; readonly deleted: true }>
    content(file: ObjectReference, options?: CallOptions): Promise<BinaryAnswer>
  }
  /** Requests that run later, at prices of their own. */
  readonly batches: {
    create(request: BatchRequest, options?: CallOptions): Promise<Batch>
    retrieve(batch: ObjectReference, options?: CallOptions): Promise<Batch>
    /** Newest first, at most 100. */
    list(page?: ListPage, options?: CallOptions): Promise<ListOf<Batch>>
    /** Begins no further request; what was answered is charged. */
    cancel(batch: ObjectReference, options?: CallOptions): Promise<Batch>
  }
  /** What a request would hold and cost at most. Nothing is held, and no model is called. */
  estimate(request: EstimatedRequest, options?: CallOptions): Promise<CallEstimate>
  /** What the gateway serves. */
  readonly models: {
    /** The models of the gateway. */
    list(options?: CallOptions): Promise<readonly ClientModel[]>
  }
  /** The caller's own account. */
  readonly account: {
    /** The balance of the caller's account. */
    balance(options?: CallOptions): Promise<AccountBalance>
  }
}

/** Makes pictures. With `stream: true` each comes in its own event, from models that support it. */
export interface Images {
  /** Makes pictures. The shape of request, answer and events is that of the model. */
  generate<
    const Model extends ModelId<ImageModels>,
    const Stream extends StreamOf<EventOf<ImageModels, Model, OtherImageEvent>> = false,
  >(
    request: ModelRequest<ImageModels, Model, OtherImageRequest> & { readonly stream?: Stream },
    options?: CallOptions,
  ): Promise<
    Stream extends true
      ? ImageStream<EventOf<ImageModels, Model, OtherImageEvent>>
      : AnswerOf<ImageModels, Model, OtherImageAnswer>
  >
  /** Changes pictures that are sent along. */
  edit<
    const Model extends ModelId<ImageEditModels>,
    const Stream extends StreamOf<EventOf<ImageEditModels, Model, OtherImageEvent>> = false,
  >(
    request: ModelRequest<ImageEditModels, Model, OtherImageEditRequest> & EditedImages & { readonly stream?: Stream },
    options?: CallOptions,
  ): Promise<Stream extends true ? ImageStream<EventOf<ImageEditModels, Model, OtherImageEvent>> : OpenAIImageAnswer>
}

/** Pictures of an edit. */
export interface EditedImages {
  /** One picture, or several where the model takes them. */
  readonly image: Upload | readonly Upload[]
  /** A PNG of the same size, transparent where the picture changes. */
  readonly mask?: Upload
}

/** Chats. */
export interface ChatCompletions {
  /** Requests an answer; with `stream: true` it comes in chunks. */
  create<const Model extends ModelId<ChatModels>, const Stream extends boolean = false>(
    request: ModelRequest<ChatModels, Model, OtherChatRequest> & { readonly stream?: Stream },
    options?: CallOptions,
  ): Promise<Stream extends true ? ChatStream : ChatCompletion>
}

/** Videos, which are made in the background. */
export interface Videos {
  /** Orders a video. */
  generate<const Model extends ModelId<VideoModels>>(
    request: ModelRequest<VideoModels, Model, OtherVideoRequest>,
    options?: CallOptions,
  ): Promise<VideoTask>
  /** How a video stands now. */
  get(video: VideoReferenceId, options?: CallOptions): Promise<VideoTask>
  /** The caller's videos, newest first. */
  list(page?: VideoPage, options?: CallOptions): Promise<VideoList>
  /** Cancels a video that is still queued; throws `task_not_cancellable` otherwise. */
  cancel(video: VideoReferenceId, options?: CallOptions): Promise<VideoTask>
  /**
   * Waits until a video has ended, well or not: `status` is `completed`, `failed` or `cancelled`. Throws `task_not_finished`
   * when `timeoutMs` is over.
   */
  wait(video: VideoReferenceId, options?: WaitOptions): Promise<VideoTask>
  /** The bytes of a completed video, fetched by the gateway. */
  content(video: VideoReferenceId, options?: CallOptions): Promise<BinaryAnswer>
}

/** Chats in Anthropic's dialect, with every chat model. */
export interface Messages {
  /** Asks a model; the whole answer. */
  create<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & MessageRequest,
    options?: CallOptions,
  ): Promise<Message>
  /** The same, event by event. */
  stream<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & MessageRequest,
    options?: CallOptions,
  ): Promise<MessageStream>
  /** Counts what a prompt would take, free of charge. */
  countTokens<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & MessagePrompt,
    options?: CallOptions,
  ): Promise<{ readonly input_tokens: number }>
  /** Messages that are asked for later, at prices of their own. */
  readonly batches: {
    create(request: MessageBatchRequest, options?: CallOptions): Promise<MessageBatch>
    retrieve(batch: ObjectReference, options?: CallOptions): Promise<MessageBatch>
    /** At most 1,000. */
    list(page?: MessageBatchPage, options?: CallOptions): Promise<MessageBatchList>
    /** Begins no further request; what was answered is charged. */
    cancel(batch: ObjectReference, options?: CallOptions): Promise<MessageBatch>
    /** Deletes a batch that has ended, and its results. */
    delete(
      batch: ObjectReference,
      options?: CallOptions,
    ): Promise<{ readonly id: string; readonly type: 'message_batch_deleted' }>
    /** The results of a batch that has ended, while they arrive. Asked for when the first one is. */
    results(batch: ObjectReference, options?: CallOptions): AsyncIterable<MessageBatchResult>
  }
}

/** OpenAI's Responses API, with every chat model. Answers are kept, and can be continued, unless `store` is false. */
export interface Responses {
  /** Requests an answer. Look at its `status`: only `completed` is a whole answer. */
  create<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & ResponseRequest,
    options?: CallOptions,
  ): Promise<ResponseAnswer>
  /** The same, event by event. An answer that fails throws its error. */
  stream<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & ResponseRequest,
    options?: CallOptions,
  ): Promise<ResponseStream>
  /** A kept answer. Throws `response_not_found` for an unknown id. */
  retrieve(response: ResponseReference, options?: CallOptions): Promise<ResponseAnswer>
  /**
   * A kept answer as events, each text in one piece.
   * @param startingAfter Number of the last event that was read; undefined for all of them.
   */
  replay(
    response: ResponseReference,
    startingAfter?: number | undefined,
    options?: CallOptions,
  ): Promise<ResponseStream>
  /**
   * Ends an answer that is made in the background; gives it as it ended. What was sent to a vendor is charged with its prompt.
   * Throws `invalid_request` for an answer that was not made in the background.
   */
  cancel(response: ResponseReference, options?: CallOptions): Promise<ResponseAnswer>
  /** Deletes a kept answer. Throws `response_not_found` if it is gone already. */
  delete(response: ResponseReference, options?: CallOptions): Promise<{ readonly id: string; readonly deleted: true }>
  /** What the model read for a kept answer, in pages. */
  inputItems(response: ResponseReference, page?: ResponseItemPage, options?: CallOptions): Promise<ResponseItemList>
  /** Counts what a prompt would take, free of charge. */
  countTokens<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & ResponsePrompt,
    options?: CallOptions,
  ): Promise<{ readonly input_tokens: number; readonly estimated?: boolean }>
}
