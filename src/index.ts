/**
 * An AI gateway that you import: one OpenAI-compatible API in front of several model vendors, inside your own process.
 * @example
 * import { createGateway, openai, anthropic } from 'signalbox'
 * import { expressHandler } from 'signalbox/express'
 *
 * const gateway = createGateway({ vendors: [openai({ apiKey }), anthropic({ apiKey: other })], billing: 'off' })
 * app.use('/ai', expressHandler(gateway))
 */

export { type Catalog, createCatalog } from './catalog/catalog.ts'
export {
  type CatalogModel,
  defineModel,
  type ImageAbilities,
  type ModelDefinition,
  type ModelKind,
  type ModelLimits,
  type ModelRoute,
  type PromptCaching,
  type SpeechAbilities,
  type TranscriptionAbilities,
  type VideoAbilities,
} from './catalog/model.ts'
export { BUILT_IN_MODELS } from './catalog/models/built-in-models.ts'
export { parseModelDefinitions } from './catalog/parse-model-definitions.ts'
export type { UnknownModels } from './catalog/prices/check-prices.ts'
export { type CatalogPrices, type ListPriceOptions, listPrices } from './catalog/prices/list-prices.ts'
export {
  type ImportedPrices,
  importLitellmPrices,
  importModelsDevPrices,
  type ReportedPrice,
  type SkippedEntry,
} from './catalog/prices/price-import.ts'
export {
  definePrices,
  type PriceConditions,
  type PriceFile,
  type PriceRow,
  type Prices,
  type ReloadablePrices,
  reloadablePrices,
} from './catalog/prices/prices.ts'
export type { MeterPrice } from './catalog/prices/rate.ts'
export type { EmbeddingsAnswer } from './client/answers.ts'
export type { TextCompletion, TextCompletionStream } from './client/chat-types.ts'
export { ClientError } from './client/client-error.ts'
export type { CallOptions } from './client/client-options.ts'
export type { GatewayClient } from './client/gateway-client.ts'
export type { ModerationAnswer, ModerationResult } from './client/models/text-models.ts'
export type { ChatChunk, ChatStream } from './client/streams.ts'
export { type Clock, systemClock, type Timer } from './core/clock.ts'
export type { Credential, CredentialProvider, CredentialRequest, SignableRequest } from './core/credential.ts'
export { ERROR_TABLE, type ErrorCode, GatewayError, type GatewayErrorDetails } from './core/errors.ts'
export type { Ending, EventListener, GatewayEvent, OperatorAction } from './core/events.ts'
export {
  type BodyFailure,
  type BodyListener,
  type ByteSink,
  type ClientAddress,
  type ExchangeHandler,
  forwardedAddress,
  type GatewayRequest,
} from './core/exchange.ts'
export type { Ids } from './core/ids.ts'
export {
  fromPino,
  fromWinston,
  type Logger,
  type PinoLogger,
  silentLogger,
  type WinstonLogger,
} from './core/logger.ts'
export type { MaybePromise } from './core/maybe-promise.ts'
export { formatDollars, parseDollars, parseSignedDollars } from './core/money.ts'
export type {
  AttemptEnd,
  AttemptFacts,
  GatewayState,
  ObservedToolCall,
  Observer,
  RequestEnd,
  RequestFacts,
  RequestOutcome,
  StoreFacts,
  ToolCallEnd,
  ToolCallFacts,
  ToolCallOutcome,
  VendorState,
} from './core/observer.ts'
export type { ModelUsage, Usage, UsageCounts } from './core/usage.ts'
export type { CachedAnswers } from './endpoints/answer-json.ts'
export type { ChatAnnotation, ChatCompletion, ChatUsage, FinishReason } from './endpoints/chat/chat-completion.ts'
export type {
  ChatContentPart,
  ChatMessage,
  ChatRequest,
  ChatTool,
  ChatToolCall,
  ChatToolChoice,
} from './endpoints/chat/chat-request.ts'
export type { ChatStreamDecoder, ChatStreamWriter } from './endpoints/chat/chat-stream-writer.ts'
export type { EmbeddingsRequest, EmbeddingsResult, EmbeddingVector } from './endpoints/embeddings/embeddings-request.ts'
export {
  type CallerUrl,
  type Continuation,
  type ContinuationRequest,
  defineEndpoint,
  type Endpoint,
  type ExtraFeature,
  type InnerModel,
  type RemoteMedia,
} from './endpoints/endpoint.ts'
export { type ErrorDialect, openaiErrors } from './endpoints/error-dialect.ts'
export type { ImageEditRequest, ImageReference } from './endpoints/image-edits/image-edit-request.ts'
export type {
  InteractionBlock,
  InteractionRequest,
  InteractionResponseFormat,
} from './endpoints/images/interactions/interaction-request.ts'
export type { MultimodalBlock, MultimodalImageRequest } from './endpoints/images/multimodal/multimodal-image-request.ts'
export type { OpenAIImageRequest } from './endpoints/images/openai/openai-image-request.ts'
export type {
  MediaFacts,
  MediaInput,
  MediaKind,
  MediaRules,
  UnknownInputBounds,
  UnknownInputTokens,
} from './endpoints/media-input.ts'
export { type Operation, passThrough } from './endpoints/operation.ts'
export type {
  RankedDocuments,
  RerankDocument,
  RerankPicture,
  RerankRequest,
  RerankResult,
} from './endpoints/rerank/rerank-request.ts'
export type { JsonSchema } from './endpoints/schema.ts'
export type { IncrementalEncoder, StreamTransform } from './endpoints/stream-transform.ts'
export type { TaskBehaviour, TaskSettings } from './endpoints/task.ts'
export type {
  AnswerObject,
  AnswerTexts,
  EndpointTexts,
  TextKind,
  TextPart,
  TextRole,
  TextStep,
  TextStreamReader,
} from './endpoints/texts.ts'
export type { TokenEstimator } from './endpoints/token-estimate.ts'
export type { VideoRequest } from './endpoints/videos/video-request.ts'
export { type AccessLogOptions, accessLog } from './gateway/access-log.ts'
export type {
  AccountBooks,
  AccountStatement,
  AdjustOptions,
  JournalPage,
  JournalPageOptions,
  JournalRange,
  MadeRefund,
  RefundOptions,
} from './gateway/account-books.ts'
export type {
  AccountSpending,
  AccountStorageOptions,
  Accounts,
  AccountsPage,
  AccountsPageOptions,
  AccountUpdate,
  Spent,
  StoredBound,
} from './gateway/accounts.ts'
export type { CacheControl, CacheOptions, CachePartition, CacheRule, CacheStats } from './gateway/cache-options.ts'
export type {
  BatchOptions,
  CatalogOptions,
  CatalogState,
  LimitOptions,
  LimitScopes,
  Plan,
} from './gateway/catalog-options.ts'
export { createGateway, type Gateway, type InProcessOptions } from './gateway/gateway.ts'
export type { GatewayHealth } from './gateway/health.ts'
export type { Holds, HoldsPage, HoldsPageOptions } from './gateway/holds.ts'
export type { GivenHook } from './gateway/hook-host.ts'
export { firstOf, gatewayKeys, type Keys, type KeysPage, type KeysPageOptions, type NewKey } from './gateway/keys.ts'
export type { ListedModel, ModelList } from './gateway/model-list.ts'
export type {
  AppliedChange,
  EjectOptions,
  KeyReport,
  OperatorActions,
  RepeatableChange,
  RouteReport,
  VendorKeys,
  VendorReport,
} from './gateway/operator-actions.ts'
export type { BillingOption, FixedKey, GatewayOptions, ResponsesOptions } from './gateway/options.ts'
export type { OverloadOptions } from './gateway/overload-guard.ts'
export type { AllTasksOptions, AllTasksPage, Tasks, TasksPageOptions } from './gateway/tasks.ts'
export type { UsageDays, UsageReport, UsageReportRow, UsageReports } from './gateway/usage.ts'
export type { AllDeliveriesOptions, AllDeliveriesPage, Webhooks } from './gateway/webhooks.ts'
export type { AskingCall, GatewayHook, HookHost, HostedEndpoint } from './hooks/call-hook.ts'
export {
  type CapturedRecord,
  type CapturedText,
  type CaptureOptions,
  capture,
  type DropReason,
} from './hooks/capture.ts'
export {
  type AnswerFacts,
  type AnswerResult,
  type AnyHook,
  type CannedAnswer,
  type Denial,
  defineHook,
  type EndpointId,
  type FailureResult,
  type Hook,
  type HookAnswer,
  type HookCall,
  type HookFacts,
  type HookFailure,
  type HookWire,
  type RequestResult,
  type TextHook,
  type TextVerdict,
  type TextWindow,
  type WireResult,
} from './hooks/hook.ts'
export { type JsonAnswerOptions, jsonAnswer } from './hooks/json-answer.ts'
export { type ModerationGuardOptions, moderationGuard } from './hooks/moderation-guard.ts'
export { type RedactionOptions, redact } from './hooks/redact.ts'
export { pii, type RedactionRule } from './hooks/redaction-rules.ts'
export type { DisconnectPolicies, DisconnectPolicy } from './pipeline/abort-scope.ts'
export type { ChargedCall, CommitWith } from './pipeline/commit-with.ts'
export type { UnpricedModels } from './pipeline/model-notices.ts'
export type { ConfigurationWarning } from './pipeline/notices.ts'
export type { Timeouts } from './pipeline/pipeline-context.ts'
export type {
  Circuit,
  FallbackPolicy,
  OpenReason,
  RouteOverride,
  RoutingOptions,
  RoutingStrategy,
} from './routing/candidate.ts'
export { createApiKey, type KeyRecord, type KeyStore, type KeysQuery } from './stores/api-keys.ts'
export type { AuditEntry, AuditQuery, AuditStore } from './stores/audit-store.ts'
export type { BlobRange, BlobStore, NewBlob, StoredBlob } from './stores/blob-store.ts'
export { type DirectoryBlobsOptions, directoryBlobs } from './stores/directory-blobs.ts'
export type {
  BatchOutcome,
  BatchStore,
  BatchTally,
  FilePage,
  FileQuery,
  FileRecord,
  FileStore,
} from './stores/file-store.ts'
export type { GatewayStore } from './stores/gateway-store.ts'
export type { ClaimResult, IdempotencyClaim, IdempotencyStore, StoredAnswer } from './stores/idempotency-store.ts'
export type {
  Adjustment,
  AdjustResult,
  ChargeDetails,
  EntryKind,
  HoldsQuery,
  Journal,
  JournalPlace,
  JournalQuery,
  JournalSum,
  JournalSums,
  LedgerEntry,
  OpenHold,
  Refund,
  RefundResult,
} from './stores/journal.ts'
export type {
  Account,
  AccountChange,
  AccountFreeze,
  AccountsQuery,
  Credit,
  HostTransaction,
  Ledger,
  NewAccount,
  Reservation,
  ReserveResult,
  Settlement,
} from './stores/ledger.ts'
export { HoldEndedError } from './stores/ledger.ts'
export { type MemoryCache, type MemoryCacheOptions, memoryCache } from './stores/memory/memory-cache.ts'
export { memoryStore } from './stores/memory/memory-store.ts'
export type {
  Authenticate,
  BillingMode,
  Credentials,
  KeyScopes,
  Principal,
  SpendingCap,
  Tier,
} from './stores/principal.ts'
export type {
  BucketState,
  ConcurrencyLimiter,
  Lease,
  RateDecision,
  RateLimiter,
  RateLimits,
  RateTake,
} from './stores/rate-limiter.ts'
export type { ListPlace, NewestFirstQuery, Resolution } from './stores/resolution.ts'
export {
  type InteractionRecord,
  type InteractionStore,
  MAX_CACHE_KEEP_MS,
  type ResponseCache,
} from './stores/response-cache.ts'
export type {
  ConversationAddition,
  ConversationHistory,
  ConversationPage,
  ConversationStore,
  ResponseStore,
  StoredConversation,
  StoredItem,
  StoredResponse,
} from './stores/response-store.ts'
export type { SettingStore, Settings } from './stores/retention.ts'
export type { SpendingThresholds, ThresholdCrossing } from './stores/spending.ts'
export type { StoredKind, StoredUsage } from './stores/sql-rows.ts'
export type {
  DeferredRequest,
  DueQuery,
  TaskChange,
  TaskChangeResult,
  TaskDetails,
  TaskFacts,
  TaskPage,
  TaskRecord,
  TaskState,
  TaskStore,
} from './stores/task-store.ts'
export type {
  DeliveryAttempt,
  DeliveryState,
  NewDelivery,
  WebhookDelivery,
  WebhookSecret,
  WebhookStore,
} from './stores/webhook-store.ts'
export type {
  EgressProxy,
  EgressRoute,
  StreamedBody,
  TlsMaterial,
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from './transport/transport.ts'
export { type UndiciTransportOptions, undiciTransport } from './transport/undici.ts'
export type { Moment, UsageQuery, UsageRecordsRequest, UsageStep } from './usage/usage-query.ts'
export type { AttemptRecord, UsageDraft, UsageRecord } from './usage/usage-record.ts'
export type { UsageRetentionDays } from './usage/usage-recorder.ts'
export type {
  UsageDimension,
  UsageFilter,
  UsageMismatch,
  UsagePage,
  UsagePlace,
  UsageRecordsQuery,
  UsageRetention,
  UsageRow,
  UsageSeriesQuery,
  UsageStore,
  UsageSums,
} from './usage/usage-store.ts'
export { type AmazonBedrockOptions, amazonBedrock } from './vendors/amazon-bedrock/amazon-bedrock.ts'
export {
  type AnthropicBedrockOptions,
  type AnthropicFoundryOptions,
  type AnthropicOptions,
  type AnthropicVertexOptions,
  anthropic,
  anthropicBedrock,
  anthropicFoundry,
  anthropicVertex,
} from './vendors/anthropic/anthropic.ts'
export { type AzureOpenAIOptions, azureOpenai } from './vendors/azure-openai/azure-openai.ts'
export { type CohereOptions, cohere } from './vendors/cohere/cohere.ts'
export { type DashScopeOptions, dashscope } from './vendors/dashscope/dashscope.ts'
export { type GeminiOptions, gemini, type VertexOptions, vertex } from './vendors/gemini/gemini.ts'
export { type OpenAIOptions, openai } from './vendors/openai/openai.ts'
export {
  type OpenAICompatibleOptions,
  openaiCompatible,
  type PresetOptions,
} from './vendors/openai-compatible/openai-compatible.ts'
export type {
  AcceptedTask,
  AnswerBody,
  AnswerIds,
  ApiKeys,
  ChatOperation,
  ChunkedAnswer,
  CompletionsOperation,
  ConnectionOptions,
  Conversation,
  EmbeddingsOperation,
  ImageOperation,
  ImageOperations,
  LinesBody,
  NativeBatches,
  NativeBatchInput,
  NativeCall,
  NativeReport,
  NativeResult,
  NativeSearch,
  PassThrough,
  PassThroughOperation,
  PassThroughReader,
  RerankInput,
  RerankLimits,
  RerankOperation,
  TaskCall,
  TaskOperation,
  TaskReport,
  Transcript,
  TranscriptionOperation,
  TranscriptSegment,
  Vendor,
  VendorCall,
  VendorFailure,
  VideoOperation,
  WeightedKey,
  WireAnswer,
  WireRequest,
} from './vendors/vendor.ts'
export { type VoyageOptions, voyage } from './vendors/voyage/voyage.ts'
export type { HeaderMap, HeaderReader } from './wire/headers.ts'
export type { Form, FormField, FormFile, FormPart } from './wire/write-form.ts'
