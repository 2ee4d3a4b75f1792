import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import type { FieldRules } from '../shared/field-rules.ts'

/**
 * Voyage's embedding fields (Voyage, text embeddings reference). It refuses arguments it does not know, and the value
 * `float`, which it means by leaving `encoding_format` out.
 */
export const VOYAGE_RULES: FieldRules<EmbeddingsRequest> = {
  model: 'pass',
  input: 'pass',
  dimensions: {
    needed: () => true,
    apply: (body, value) => {
      delete body['dimensions']
      if (value !== null) body['output_dimension'] = value
    },
  },
  encoding_format: {
    needed: (value) => value !== 'base64',
    apply: (body) => {
      delete body['encoding_format']
    },
  },
  user: 'drop',
}
