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
export { type BuiltChat, type ChatBuilder, chat } from './chat-builder.ts'
export { type BuiltEmbedding, type EmbeddingBuilder, embedding } from './embedding-builder.ts'
export { type BuiltImage, type ImageBuilder, type ImageModelFacts, image } from './image-builder.ts'
export type { InteractionPicture } from './image-drafts.ts'
export { type BuiltImageEdit, type ImageEditBuilder, imageEdit } from './image-edit-builder.ts'
export { type BuiltModeration, type ModerationBuilder, moderation } from './moderation-builder.ts'
export { type BuiltRerank, type RerankBuilder, rerank } from './rerank-builder.ts'
export { type BuiltResponse, type ResponseBuilder, response } from './response-builder.ts'
export { type BuiltSpeech, type SpeechBuilder, speech } from './speech-builder.ts'
export { type BuiltVideo, type VideoBuilder, video } from './video-builder.ts'
