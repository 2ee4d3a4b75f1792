/**
 * A client of a gateway, for Node, browsers and other runtimes. Builders of its requests are in `signalbox/builders`.
 *
 * @example
 * import { createClient } from 'signalbox/client'
 *
 * const client = createClient({ baseURL: 'http://127.0.0.1:8787/v1', apiKey })
 * const vectors = await client.embeddings.create({ model: 'vy-4', input: ['one', 'two'], dimensions: 512 })
 */

export { ERROR_TABLE, type ErrorCode, GatewayError } from '../core/errors.ts'
export type { ChatAnnotation, ChatCompletion, ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
export type {
  ChatResponseFormat,
  ChatToolCall,
  ChatToolChoice,
  ReasoningEffort,
} from '../endpoints/chat/chat-request.ts'
export type {
  Batch,
  BatchRequest,
  FilePage,
  FileUpload,
  KeptFile,
  ListOf,
  ListPage,
  ObjectReference,
} from './batch-types.ts'
export type { BinaryAnswer } from './binary-answer.ts'
export type { CacheBreakpoint, CacheControl, CacheMarks } from './cache-marks.ts'
export type { ChatContentPart, ChatMessage, ChatTool } from './chat-types.ts'
export { ClientError } from './client-error.ts'
export type { CallOptions, ClientOptions, ResponseFacts } from './client-options.ts'
export type { TextCompletion, TextCompletionRequest, TextCompletionStream } from './completion-types.ts'
export { createClient } from './create-client.ts'
export type { EmbeddingsAnswer, VectorOf } from './embedding-answer.ts'
export type { EventStream } from './event-stream.ts'
export type {
  AccountBalance,
  CallEstimate,
  ChatCompletions,
  ClientModel,
  EditedImages,
  EstimatedRequest,
  GatewayClient,
  Images,
  Messages,
  Responses,
  VideoPage,
  VideoReferenceId,
  Videos,
} from './gateway-client.ts'
export type {
  MessageBatch,
  MessageBatchList,
  MessageBatchPage,
  MessageBatchRequest,
  MessageBatchResult,
} from './message-batch-types.ts'
export type {
  Message,
  MessageBlock,
  MessageDelta,
  MessageEvent,
  MessageImageSource,
  MessageParam,
  MessageParamBlock,
  MessagePrompt,
  MessageRequest,
  MessageTool,
  MessageUsage,
  ServerTool,
  ServerToolType,
  StopReason,
} from './message-types.ts'
export type {
  ChatFields,
  ChatModel,
  ChatModels,
  ListedChatModels,
  OneAnswerChatFields,
  OpenAIChatFields,
  OtherChatRequest,
} from './models/chat-models.ts'
export type {
  EmbeddingFields,
  EmbeddingModel,
  EmbeddingModels,
  OtherEmbeddingRequest,
  TextEmbeddingFields,
} from './models/embedding-models.ts'
export type {
  ImageEditModel,
  ImageEditModels,
  ImageModel,
  ImageModels,
  ListedImageModels,
  OtherImageAnswer,
  OtherImageEditRequest,
  OtherImageEvent,
  OtherImageRequest,
} from './models/image-models.ts'
export type {
  InteractionConfig,
  InteractionDelta,
  InteractionEvent,
  InteractionImageAnswer,
  InteractionImageRequest,
  InteractionInput,
  InteractionRatio,
  InteractionStep,
  ThinkingInteractionConfig,
  WideInteractionRatio,
} from './models/interaction-images.ts'
export type { AnswerOf, EventOf, ModelId, RequestOf } from './models/model-request.ts'
export type {
  DefaultModerationModel,
  ModerationAnswer,
  ModerationFields,
  ModerationInputPart,
  ModerationModel,
  ModerationModels,
  ModerationResult,
  OmniCategory,
  OmniModerationAnswer,
  OtherModerationRequest,
  TextModerationFields,
} from './models/moderation-models.ts'
export type {
  MultimodalImageAnswer,
  MultimodalPictureRequest,
  MultimodalPlainEditRequest,
  MultimodalSize,
  MultimodalTextRequest,
} from './models/multimodal-images.ts'
export type {
  ImageEditRequest,
  ImageQuality,
  ListedSizeImageRequest,
  OpenAIImageAnswer,
  OpenAIImageEditEvent,
  OpenAIImageEvent,
  OpenAIImageRequest,
  PlainImageEditRequest,
  PlannedImageQuality,
} from './models/openai-images.ts'
export type {
  OtherRerankRequest,
  RerankAnswer,
  RerankFields,
  RerankModel,
  RerankModels,
} from './models/rerank-models.ts'
export type {
  InstructedSpeechFields,
  ListedSpeechModels,
  OtherSpeechRequest,
  SpeechFields,
  SpeechModel,
  SpeechModels,
} from './models/speech-models.ts'
export type {
  DiarizedTranscriptionFields,
  OtherTranscriptionRequest,
  TimedTranscriptionAnswer,
  TimedTranscriptionFields,
  TranscriptionAnswer,
  TranscriptionAnswerOf,
  TranscriptionFields,
  TranscriptionFormat,
  TranscriptionModel,
  TranscriptionModels,
  TranscriptionUsage,
} from './models/transcription-models.ts'
export type {
  FrameMedia,
  OtherVideoRequest,
  ReferenceMedia,
  VideoAbility,
  VideoFields,
  VideoModel,
  VideoModels,
  VideoRatio,
  VideoTaskKind,
  Wan26PictureRequest,
  Wan26ReferenceRequest,
  Wan26TextRequest,
  Wan27PictureRequest,
  Wan27ReferenceRequest,
  Wan27TextRequest,
} from './models/video-models.ts'
export type {
  HostedToolType,
  ResponseAnswer,
  ResponseEvent,
  ResponseInputItem,
  ResponseInputPart,
  ResponseItemList,
  ResponseItemPage,
  ResponseOutputItem,
  ResponseOutputPart,
  ResponsePrompt,
  ResponseReference,
  ResponseRequest,
  ResponseTokens,
  ResponseTool,
} from './response-types.ts'
export type {
  ChatChunk,
  ChatStream,
  ImageStream,
  MessageStream,
  ResponseStream,
  SpeechEvent,
  SpeechStream,
  TranscriptionEvent,
  TranscriptionStream,
} from './streams.ts'
export type { Upload } from './upload.ts'
export { type ReceivedWebhook, verifyWebhook, type WebhookHeaders, type WebhookMessage } from './verify-webhook.ts'
export type { VideoList, VideoProgress, VideoStatus, VideoTask, WaitOptions } from './video-task.ts'
