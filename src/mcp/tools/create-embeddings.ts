import { z } from 'zod'
import { defineTool, MAKES } from '../tool.ts'
import { idempotencyKey, model } from './arguments.ts'

/** `POST /v1/embeddings`. */
export const createEmbeddings = defineTool({
  name: 'create_embeddings',
  title: 'Embed texts',
  description: 'Turns texts into vectors, in the order of the input. Charged by tokens.',
  annotations: MAKES,
  input: z.looseObject({
    model,
    input: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).describe('A text, or a batch of texts.'),
    dimensions: z.int().min(1).optional().describe('Length of the vectors. Default: the own length of the model.'),
    encoding_format: z.enum(['float', 'base64']).optional().describe('Numbers (default), or packed 32-bit floats.'),
    idempotency_key: idempotencyKey,
  }),
  output: z.looseObject({
    object: z.literal('list'),
    model: z.string(),
    data: z.array(
      z.looseObject({
        object: z.literal('embedding'),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string()]),
      }),
    ),
    usage: z.looseObject({ prompt_tokens: z.int(), total_tokens: z.int() }),
  }),
  async answer({ idempotency_key: key, ...body }, { json }) {
    return { structured: await json({ method: 'POST', path: '/v1/embeddings', body, idempotencyKey: key }) }
  },
})
