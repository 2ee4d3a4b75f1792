import type { ChatCompletion } from '../endpoints/chat/chat-completion.ts'
import type { BinaryAnswer, EmbeddingsAnswer, VectorOf } from './answers.ts'
import type {
  Batch,
  BatchRequest,
  FilePage,
  FileUpload,
  KeptFile,
  ListOf,
  ListPage,
  MessageBatch,
  MessageBatchList,
  MessageBatchPage,
  MessageBatchRequest,
  MessageBatchResult,
  ObjectReference,
} from './batch-types.ts'
import type { TextCompletion, TextCompletionRequest, TextCompletionStream } from './chat-types.ts'
import type { CallOptions } from './client-options.ts'
import type { Message, MessagePrompt, MessageRequest } from './message-types.ts'
import type {
  OtherSpeechRequest,
  OtherTranscriptionRequest,
  SpeechModels,
  TranscriptionAnswerOf,
  TranscriptionFormat,
  TranscriptionModels,
} from './models/audio-models.ts'
import type { ChatModels, OtherChatRequest } from './models/chat-models.ts'
import type {
  ImageEditModels,
  ImageModels,
  OpenAIImageAnswer,
  OtherImageAnswer,
  OtherImageEditRequest,
  OtherImageEvent,
  OtherImageRequest,
} from './models/image-models.ts'
import type { AnswerOf, EventOf, ModelId, ModelRequest, RequestOf, StreamOf } from './models/model-request.ts'
import type {
  DefaultModerationModel,
  EmbeddingModels,
  ModerationAnswer,
  ModerationModels,
  OtherEmbeddingRequest,
  OtherModerationRequest,
  OtherRerankRequest,
  RerankAnswer,
  RerankModels,
} from './models/text-models.ts'
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

/** Model in the gateway's list. */
export interface ClientModel {
  /** Id that callers use in requests. */
  readonly id: string
  /** Id of the vendor. */
  readonly owned_by: string
  /** Display name. */
  readonly display_name: string
  /** Kinds of work that the model does; see `ModelKind`. */
  readonly kinds: readonly string[]
  /** Whether the vendor of the model is configured. */
  readonly available: boolean
}

/** The caller's account. Amounts are decimal dollars. */
export interface AccountBalance {
  readonly object: 'account'
  readonly id: string
  /** Balance without holds. */
  readonly balance: string
  /** Amount held for calls and videos in progress. */
  readonly held: string
  /** Amount used beyond the balance and not paid yet. While it is above zero, requests fail with `account_in_arrears`. */
  readonly owed: string
  readonly currency: 'USD'
  readonly tier: 'paid' | 'free'
}

/** Request to estimate. */
export interface EstimatedRequest {
  /** Id or path of the endpoint: `chat`, `/v1/chat/completions`. */
  readonly endpoint: string
  /** Body of the request, as builders create it. */
  readonly body: object
}

/** Maximum usage, hold and cost of a request. */
export interface CallEstimate {
  readonly object: 'estimate'
  /** Id of the endpoint. */
  readonly endpoint: string
  /** Public id of the requested model. */
  readonly model: string
  /** Upper estimate of the usage, by name: `inputTokens`, `outputTokens`, `images`. */
  readonly usage: Readonly<Record<string, number>>
  /** Whether billing is on. If `off`, nothing would be held or charged. */
  readonly billing: 'on' | 'off'
  /** Amount to hold in decimal dollars, or `null` if billing is off. */
  readonly held: string | null
  readonly currency: 'USD'
  /** Always false: the cost of a call is known only at its end. */
  readonly exact: false
  /** Models that may answer: the requested one, then its fallbacks. */
  readonly models: readonly string[]
}

/** Selects a page of videos. Cursors are ids of videos. */
export interface VideoPage {
  /** Maximum number of videos per page, from 1 to 100. Default 20. */
  readonly limit?: number
  /** Cursor: lists the videos older than this one. */
  readonly after?: string
  /** Cursor: lists the videos newer than this one. */
  readonly before?: string
}

/** Video, or its id. */
export type VideoReferenceId = string | { readonly id: string }

/**
 * Client of one gateway. The id of the model narrows the request; unknown ids are accepted. Every method throws a `ClientError` (a
 * `GatewayError`) if the gateway answers with an error or cannot be reached, and the reason of the caller's signal if that ended the
 * call.
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
  /** Images, and edits of images. */
  readonly images: Images
  /** Videos: tasks to submit, poll and download. */
  readonly videos: Videos
  /** Webhooks that this program receives. */
  readonly webhooks: {
    /**
     * Verifies a received webhook and returns its message, without any call.
     * @throws ClientError `invalid_request` if the webhook cannot be trusted; TypeError if the secret is malformed.
     */
    verify(webhook: ReceivedWebhook): Promise<WebhookMessage>
  }
  /** Vectors of texts. */
  readonly embeddings: {
    /** Creates vectors. With `encoding_format: 'base64'` they are sent as base64 and returned as `Float32Array`. */
    create<const Model extends ModelId<EmbeddingModels>, const Encoding extends 'float' | 'base64' = 'float'>(
      request: ModelRequest<EmbeddingModels, Model, OtherEmbeddingRequest> & { readonly encoding_format?: Encoding },
      options?: CallOptions,
    ): Promise<EmbeddingsAnswer<VectorOf<Encoding>>>
  }
  /** Moderation of texts and images. */
  readonly moderations: {
    /** Judges texts and images. The categories depend on the model's vendor. */
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
      /** Turns text into speech. The answer can be read while it is generated; with `stream_format: 'sse'` it arrives in events. */
      create<const Model extends ModelId<SpeechModels>, const Format extends 'audio' | 'sse' = 'audio'>(
        request: ModelRequest<SpeechModels, Model, OtherSpeechRequest> & { readonly stream_format?: Format },
        options?: CallOptions,
      ): Promise<Format extends 'sse' ? SpeechStream : BinaryAnswer>
    }
    readonly transcriptions: {
      /**
       * Transcribes a recording. The formats `text`, `srt` and `vtt` return a string, the others an object. With `stream: true` the
       * text arrives in events; if the model does not stream, only the last event contains it.
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
  /** Files with the requests and answers of batches. */
  readonly files: {
    create(upload: FileUpload, options?: CallOptions): Promise<KeptFile>
    retrieve(file: ObjectReference, options?: CallOptions): Promise<KeptFile>
    /** Newest first, at most 10,000. */
    list(page?: FilePage, options?: CallOptions): Promise<ListOf<KeptFile>>
    delete(file: ObjectReference, options?: CallOptions): Promise<{ readonly id: string; readonly deleted: true }>
    content(file: ObjectReference, options?: CallOptions): Promise<BinaryAnswer>
  }
  /** Requests that run later, at separate prices. */
  readonly batches: {
    create(request: BatchRequest, options?: CallOptions): Promise<Batch>
    retrieve(batch: ObjectReference, options?: CallOptions): Promise<Batch>
    /** Newest first, at most 100. */
    list(page?: ListPage, options?: CallOptions): Promise<ListOf<Batch>>
    /** Cancels a batch: no more requests are started, and answered requests are charged. */
    cancel(batch: ObjectReference, options?: CallOptions): Promise<Batch>
  }
  /** Returns the maximum hold and cost of a request. Nothing is held, and no model is called. */
  estimate(request: EstimatedRequest, options?: CallOptions): Promise<CallEstimate>
  /** Models of the gateway. */
  readonly models: {
    /** Lists the models of the gateway. */
    list(options?: CallOptions): Promise<readonly ClientModel[]>
  }
  /** Account of the caller. */
  readonly account: {
    /** Returns the balance of the caller's account. */
    balance(options?: CallOptions): Promise<AccountBalance>
  }
}

/** Creates images. With `stream: true` each arrives in its own event, if the model supports it. */
export interface Images {
  /** Creates images. The model determines the shape of request, answer and events. */
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
  /** Edits images that are sent along. */
  edit<
    const Model extends ModelId<ImageEditModels>,
    const Stream extends StreamOf<EventOf<ImageEditModels, Model, OtherImageEvent>> = false,
  >(
    request: ModelRequest<ImageEditModels, Model, OtherImageEditRequest> & EditedImages & { readonly stream?: Stream },
    options?: CallOptions,
  ): Promise<Stream extends true ? ImageStream<EventOf<ImageEditModels, Model, OtherImageEvent>> : OpenAIImageAnswer>
}

/** Input images of an edit. */
export interface EditedImages {
  /** One image, or several if the model supports that. */
  readonly image: Upload | readonly Upload[]
  /** Mask: a PNG of the same size, transparent where the image should change. */
  readonly mask?: Upload
}

/** Chats. */
export interface ChatCompletions {
  /** Requests an answer; with `stream: true` it arrives in chunks. */
  create<const Model extends ModelId<ChatModels>, const Stream extends boolean = false>(
    request: ModelRequest<ChatModels, Model, OtherChatRequest> & { readonly stream?: Stream },
    options?: CallOptions,
  ): Promise<Stream extends true ? ChatStream : ChatCompletion>
}

/** Videos, which are generated in the background. */
export interface Videos {
  /** Submits a video. */
  generate<const Model extends ModelId<VideoModels>>(
    request: ModelRequest<VideoModels, Model, OtherVideoRequest>,
    options?: CallOptions,
  ): Promise<VideoTask>
  /** Returns the current state of a video. */
  get(video: VideoReferenceId, options?: CallOptions): Promise<VideoTask>
  /** Lists the caller's videos, newest first. */
  list(page?: VideoPage, options?: CallOptions): Promise<VideoList>
  /** Cancels a video that is still queued; otherwise throws `task_not_cancellable`. */
  cancel(video: VideoReferenceId, options?: CallOptions): Promise<VideoTask>
  /** Waits until a video has ended: `status` is `completed`, `failed` or `cancelled`. Throws `task_not_finished` after `timeoutMs`. */
  wait(video: VideoReferenceId, options?: WaitOptions): Promise<VideoTask>
  /** Returns the bytes of a completed video, fetched by the gateway. */
  content(video: VideoReferenceId, options?: CallOptions): Promise<BinaryAnswer>
}

/** Chats in Anthropic's dialect, with every chat model. */
export interface Messages {
  /** Sends a request and returns the whole answer. */
  create<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & MessageRequest,
    options?: CallOptions,
  ): Promise<Message>
  /** Sends a request and returns the answer event by event. */
  stream<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & MessageRequest,
    options?: CallOptions,
  ): Promise<MessageStream>
  /** Counts the tokens of a prompt, free of charge. */
  countTokens<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & MessagePrompt,
    options?: CallOptions,
  ): Promise<{ readonly input_tokens: number }>
  /** Message requests that run later, at separate prices. */
  readonly batches: {
    create(request: MessageBatchRequest, options?: CallOptions): Promise<MessageBatch>
    retrieve(batch: ObjectReference, options?: CallOptions): Promise<MessageBatch>
    /** Lists batches, at most 1,000 per page. */
    list(page?: MessageBatchPage, options?: CallOptions): Promise<MessageBatchList>
    /** Cancels a batch: no more requests are started, and answered requests are charged. */
    cancel(batch: ObjectReference, options?: CallOptions): Promise<MessageBatch>
    /** Deletes a finished batch and its results. */
    delete(
      batch: ObjectReference,
      options?: CallOptions,
    ): Promise<{ readonly id: string; readonly type: 'message_batch_deleted' }>
    /** Yields the results of a finished batch as they arrive. The request is sent when iteration starts. */
    results(batch: ObjectReference, options?: CallOptions): AsyncIterable<MessageBatchResult>
  }
}

/** OpenAI's Responses API, with every chat model. Answers are stored, and can be continued, unless `store` is false. */
export interface Responses {
  /** Requests an answer. Check its `status`: only `completed` is a whole answer. */
  create<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & ResponseRequest,
    options?: CallOptions,
  ): Promise<ResponseAnswer>
  /** Requests an answer event by event. An answer that fails throws its error. */
  stream<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & ResponseRequest,
    options?: CallOptions,
  ): Promise<ResponseStream>
  /** Returns a stored answer. Throws `response_not_found` if the id is unknown. */
  retrieve(response: ResponseReference, options?: CallOptions): Promise<ResponseAnswer>
  /**
   * Returns a stored answer as events, each text in one piece.
   * @param startingAfter Number of the last event that was read. If omitted, all events are returned.
   */
  replay(
    response: ResponseReference,
    startingAfter?: number | undefined,
    options?: CallOptions,
  ): Promise<ResponseStream>
  /**
   * Ends a background answer, and returns its final state. If a vendor was called, the prompt is charged. Throws `invalid_request` if
   * the answer is not a background answer.
   */
  cancel(response: ResponseReference, options?: CallOptions): Promise<ResponseAnswer>
  /** Deletes a stored answer. Throws `response_not_found` if it is already deleted. */
  delete(response: ResponseReference, options?: CallOptions): Promise<{ readonly id: string; readonly deleted: true }>
  /** Lists the items that the model read for a stored answer, in pages. */
  inputItems(response: ResponseReference, page?: ResponseItemPage, options?: CallOptions): Promise<ResponseItemList>
  /** Counts the tokens of a prompt, free of charge. */
  countTokens<const Model extends ModelId<ChatModels>>(
    request: { readonly model: Model } & ResponsePrompt,
    options?: CallOptions,
  ): Promise<{ readonly input_tokens: number; readonly estimated?: boolean }>
}
