import { chatEndpoint } from './chat/chat-endpoint.ts'
import { embeddingsEndpoint } from './embeddings/embeddings-endpoint.ts'
import type { EmbeddingsOffer } from './embeddings/embeddings-operation.ts'
import type { Endpoint } from './endpoint.ts'
import { type ImageEditsOffer, imageEditEndpoint } from './image-edits/image-edit-endpoint.ts'
import type { ImagesOffer } from './images/image-operation.ts'
import { imagesEndpoint } from './images/images-endpoint.ts'
import { countTokensEndpoint, messagesEndpoint } from './messages/messages-endpoint.ts'
import type { MessagesOffer } from './messages/messages-operation.ts'
import { inputTokensEndpoint, responsesEndpoint } from './responses/responses-endpoint.ts'
import type { ResponsesOffer } from './responses/responses-operation.ts'
import { speechEndpoint } from './speech/speech-endpoint.ts'
import type { SpeechOffer } from './speech/speech-operation.ts'
import { videoEndpoint } from './videos/video-endpoint.ts'
import type { VideosOffer } from './videos/video-operation.ts'

/** The endpoints of the gateway that call models, one line each. The first one's errors are read where no endpoint is near. */
export const ENDPOINTS: readonly Endpoint[] = [
  chatEndpoint,
  messagesEndpoint,
  countTokensEndpoint,
  responsesEndpoint,
  inputTokensEndpoint,
  embeddingsEndpoint,
  imagesEndpoint,
  imageEditEndpoint,
  videoEndpoint,
  speechEndpoint,
]

/** What vendors can offer, by endpoint. Messages and token counts include chat. */
export interface VendorOffers
  extends MessagesOffer,
    ResponsesOffer,
    EmbeddingsOffer,
    ImagesOffer,
    ImageEditsOffer,
    VideosOffer,
    SpeechOffer {}
