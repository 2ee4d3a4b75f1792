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
export type { BinaryAnswer, EmbeddingsAnswer, VectorOf } from './answers.ts'
export type {
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
export type {
  ChatContentPart,
  ChatMessage,
  ChatTool,
  TextCompletion,
  TextCompletionRequest,
  TextCompletionStream,
} from './chat-types.ts'
export { ClientError } from './client-error.ts'
export type { CallOptions, ClientOptions, ResponseFacts } from './client-options.ts'
export { createClient } from './create-client.ts'
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
  CacheBreakpoint,
  CacheControl,
  CacheMarks,
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
  DiarizedTranscriptionFields,
  InstructedSpeechFields,
  ListedSpeechModels,
  OtherSpeechRequest,
  OtherTranscriptionRequest,
  SpeechFields,
  SpeechModel,
  SpeechModels,
  TimedTranscriptionAnswer,
  TimedTranscriptionFields,
  TranscriptionAnswer,
  TranscriptionAnswerOf,
  TranscriptionFields,
  TranscriptionFormat,
  TranscriptionModel,
  TranscriptionModels,
  TranscriptionUsage,
} from './models/audio-models.ts'
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
  ImageEditModel,
  ImageEditModels,
  ImageEditRequest,
  ImageModel,
  ImageModels,
  ImageQuality,
  InteractionConfig,
  InteractionDelta,
  InteractionEvent,
  InteractionImageAnswer,
  InteractionImageRequest,
  InteractionInput,
  InteractionRatio,
  InteractionStep,
  ListedImageModels,
  ListedSizeImageRequest,
  MultimodalImageAnswer,
  MultimodalPictureRequest,
  MultimodalPlainEditRequest,
  MultimodalSize,
  MultimodalTextRequest,
  OpenAIImageAnswer,
  OpenAIImageEditEvent,
  OpenAIImageEvent,
  OpenAIImageRequest,
  OtherImageAnswer,
  OtherImageEditRequest,
  OtherImageEvent,
  OtherImageRequest,
  PlainImageEditRequest,
  PlannedImageQuality,
  ThinkingInteractionConfig,
  WideInteractionRatio,
} from './models/image-models.ts'
export type { AnswerOf, EventOf, ModelId, RequestOf } from './models/model-request.ts'
export type {
  DefaultModerationModel,
  EmbeddingFields,
  EmbeddingModel,
  EmbeddingModels,
  ModerationAnswer,
  ModerationFields,
  ModerationInputPart,
  ModerationModel,
  ModerationModels,
  ModerationResult,
  OmniCategory,
  OmniModerationAnswer,
  OtherEmbeddingRequest,
  OtherModerationRequest,
  OtherRerankRequest,
  RerankAnswer,
  RerankFields,
  RerankModel,
  RerankModels,
  TextEmbeddingFields,
  TextModerationFields,
} from './models/text-models.ts'
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
  EventStream,
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
