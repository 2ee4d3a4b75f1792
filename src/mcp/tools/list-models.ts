import { z } from 'zod'
import { MODEL_KINDS } from '../../core/model-kind.ts'
import { defineTool, LOOKS_UP } from '../tool.ts'

/** The models of `GET /v1/models`, narrowed down. */
export const listModels = defineTool({
  name: 'list_models',
  title: 'List models',
  description:
    `Lists the models with their kinds: ${MODEL_KINDS.join(', ')}. Limits and abilities of one ` +
    'model stand in gateway://catalog/{model}.',
  annotations: LOOKS_UP,
  input: z.object({
    kind: z.enum(MODEL_KINDS).optional().describe('Models of this kind only.'),
    available_only: z.boolean().optional().describe('Leaves out models whose vendor is not configured. Default true.'),
  }),
  output: z.object({
    models: z.array(z.looseObject({ id: z.string(), kinds: z.array(z.string()), available: z.boolean() })),
  }),
  async answer({ kind, available_only: availableOnly = true }, { gateway }) {
    const models = gateway
      .models()
      .filter((row) => (kind === undefined || row.kinds.includes(kind)) && (row.available || !availableOnly))
      .map(({ id, display_name, owned_by, kinds, available, max_input_tokens, max_tokens }) => ({
        id,
        display_name,
        owned_by,
        kinds,
        available,
        ...(max_input_tokens === undefined ? {} : { max_input_tokens }),
        ...(max_tokens === undefined ? {} : { max_tokens }),
      }))
    return { structured: { models } }
  },
})
