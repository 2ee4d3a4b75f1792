import { chatEndpoint } from './chat/chat-endpoint.ts'
import type { ChatRequest } from './chat/chat-request.ts'
import type { CompletionRequest } from './completions/completion-request.ts'
import { type CompletionsOffer, completionsEndpoint } from './completions/completions-endpoint.ts'
import { type EmbeddingsOffer, embeddingsEndpoint } from './embeddings/embeddings-endpoint.ts'
import type { EmbeddingsRequest } from './embeddings/embeddings-request.ts'
import type { Endpoint } from './endpoint.ts'
import { type ImageEditsOffer, imageEditEndpoint } from './image-edits/image-edit-endpoint.ts'
import type { ImageEditRequest } from './image-edits/image-edit-request.ts'
import type { ImagesOffer } from './images/image-operation.ts'
import { imagesEndpoint } from './images/images-endpoint.ts'
import type { InteractionRequest } from './images/interactions/interaction-request.ts'
import type { MultimodalImageRequest } from './images/multimodal/multimodal-image-request.ts'
import type { OpenAIImageRequest } from './images/openai/openai-image-request.ts'
import { countTokensEndpoint, messagesEndpoint } from './messages/messages-endpoint.ts'
import type { MessagesOffer } from './messages/messages-operation.ts'
import type { MessagesRequest } from './messages/messages-request.ts'
import {
  type ModerationRequest,
  type ModerationsOffer,
  moderationsEndpoint,
} from './moderations/moderations-endpoint.ts'
import { type RerankOffer, rerankEndpoint, rerankV2Endpoint } from './rerank/rerank-endpoint.ts'
import type { RerankRequest } from './rerank/rerank-request.ts'
import { inputTokensEndpoint, responsesEndpoint } from './responses/responses-endpoint.ts'
import type { ResponsesOffer } from './responses/responses-operation.ts'
import type { ResponsesRequest } from './responses/responses-request.ts'
import { type SpeechOffer, speechEndpoint } from './speech/speech-endpoint.ts'
import type { SpeechRequest } from './speech/speech-request.ts'
import { transcriptionEndpoint } from './transcriptions/transcription-endpoint.ts'
import type { TranscriptionOffer } from './transcriptions/transcription-operation.ts'
import type { TranscriptionRequest } from './transcriptions/transcription-request.ts'
import { type VideosOffer, videoEndpoint } from './videos/video-endpoint.ts'
import type { VideoRequest } from './videos/video-request.ts'

/** Endpoints that call models, one per line. Errors outside of all endpoints use the dialect of the first. */
export const ENDPOINTS: readonly Endpoint[] = [
  chatEndpoint,
  messagesEndpoint,
  countTokensEndpoint,
  responsesEndpoint,
  inputTokensEndpoint,
  embeddingsEndpoint,
  rerankEndpoint,
  rerankV2Endpoint,
  imagesEndpoint,
  imageEditEndpoint,
  videoEndpoint,
  speechEndpoint,
  transcriptionEndpoint,
  moderationsEndpoint,
  completionsEndpoint,
]

/** Requests of the gateway's own endpoints, by the id of the endpoint. */
export interface EndpointRequests {
  chat: ChatRequest
  messages: MessagesRequest
  responses: ResponsesRequest
  embeddings: EmbeddingsRequest
  rerank: RerankRequest
  images: OpenAIImageRequest | MultimodalImageRequest | InteractionRequest
  image_edits: ImageEditRequest
  videos: VideoRequest
  speech: SpeechRequest
  transcriptions: TranscriptionRequest
  moderations: ModerationRequest
  completions: CompletionRequest
}

/** Parts that vendors can offer, by endpoint. Messages and token counts include chat. */
export interface VendorOffers
  extends MessagesOffer,
    ResponsesOffer,
    EmbeddingsOffer,
    RerankOffer,
    ImagesOffer,
    ImageEditsOffer,
    VideosOffer,
    SpeechOffer,
    TranscriptionOffer,
    ModerationsOffer,
    CompletionsOffer {}
