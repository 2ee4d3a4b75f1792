import type { z } from 'zod'
import { chatSchema } from '../../endpoints/chat/chat-schema.ts'
import { embeddingsSchema } from '../../endpoints/embeddings/embeddings-request.ts'
import { imageReferencesSchema } from '../../endpoints/image-edits/image-edit-request.ts'
import { interactionSchema } from '../../endpoints/images/interactions/interaction-schema.ts'
import { multimodalImageSchema } from '../../endpoints/images/multimodal/multimodal-image-schema.ts'
import { pictureSchema } from '../../endpoints/images/openai/openai-image-schema.ts'
import { countTokensSchema, messagesSchema } from '../../endpoints/messages/messages-request.ts'
import { ENDPOINTS } from '../../endpoints/registry.ts'
import { inputTokensSchema, responsesSchema } from '../../endpoints/responses/responses-schema.ts'
import { speechSchema } from '../../endpoints/speech/speech-request.ts'
import { videoSchema } from '../../endpoints/videos/parse-video-request.ts'
import { jsonSchemaOf } from '../tool.ts'

/** A shape of request body, and when it is the right one. */
interface Shape {
  readonly for: string
  readonly schema: z.ZodType
}

const EVERY_MODEL = 'every model of the endpoint'

/** Schemas of request bodies, by path. Rules that depend on the model are in `gateway://catalog/{model}`. */
const SHAPES: ReadonlyMap<string, readonly Shape[]> = new Map([
  ['/v1/chat/completions', [{ for: EVERY_MODEL, schema: chatSchema }]],
  ['/v1/messages', [{ for: EVERY_MODEL, schema: messagesSchema }]],
  ['/v1/messages/count_tokens', [{ for: EVERY_MODEL, schema: countTokensSchema }]],
  ['/v1/responses', [{ for: EVERY_MODEL, schema: responsesSchema }]],
  ['/v1/responses/input_tokens', [{ for: EVERY_MODEL, schema: inputTokensSchema }]],
  ['/v1/embeddings', [{ for: EVERY_MODEL, schema: embeddingsSchema }]],
  [
    '/v1/images/generations',
    [
      { for: 'models of the protocol multimodal', schema: multimodalImageSchema },
      { for: 'models of the protocol interactions', schema: interactionSchema },
      { for: 'models of the protocol generations', schema: pictureSchema },
    ],
  ],
  ['/v1/images/edits', [{ for: EVERY_MODEL, schema: pictureSchema.extend(imageReferencesSchema.shape) }]],
  ['/v1/videos/generations', [{ for: EVERY_MODEL, schema: videoSchema }]],
  ['/v1/audio/speech', [{ for: EVERY_MODEL, schema: speechSchema }]],
])

/** The reference of each endpoint, by its id, built on request. Several paths may share an id. */
export const REFERENCES: ReadonlyMap<string, () => unknown> = new Map(
  ENDPOINTS.map(({ id }) => [
    id,
    () => ({
      endpoint: id,
      requests: ENDPOINTS.filter((endpoint) => endpoint.id === id).flatMap(({ path }) => requestsAt(path)),
    }),
  ]),
)

function requestsAt(path: string) {
  return (SHAPES.get(path) ?? []).map((shape) => ({
    method: 'POST',
    path,
    for: shape.for,
    schema: jsonSchemaOf(shape.schema, 'input'),
  }))
}
