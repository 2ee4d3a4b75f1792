/**
 * Builders of request bodies: typed, immutable, and usable with any HTTP client. They include the models, so they are
 * separate from the client, which does not.
 *
 * @example
 * import { video } from 'signalbox/builders'
 *
 * const body = video('wv2.7-t2v').prompt('A boat leaves the harbour.').tier('720p').seconds(5).build()
 */

export { type ErrorCode, GatewayError } from '../../core/errors.ts'
export {
  type BuiltChat,
  type BuiltResponse,
  type ChatBuilder,
  chat,
  type ResponseBuilder,
  response,
} from './chat-builder.ts'
export {
  type BuiltImage,
  type BuiltImageEdit,
  type ImageBuilder,
  type ImageEditBuilder,
  type ImageModelFacts,
  type InteractionPicture,
  image,
  imageEdit,
} from './image-builder.ts'
export {
  type BuiltEmbedding,
  type BuiltModeration,
  type BuiltRerank,
  type BuiltSpeech,
  type EmbeddingBuilder,
  embedding,
  type ModerationBuilder,
  moderation,
  type RerankBuilder,
  rerank,
  type SpeechBuilder,
  speech,
} from './text-builders.ts'
export { type BuiltVideo, type VideoBuilder, video } from './video-builder.ts'
