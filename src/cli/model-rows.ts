import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { alignedRows } from './aligned-rows.ts'

/** The built-in catalog as lines of text: id, kinds, vendor, the vendor's own id. */
export function builtInModelRows(): string[] {
  return alignedRows(
    BUILT_IN_MODELS.map((model) => [model.id, [model.kind].flat().join('+'), model.vendor, model.upstream ?? model.id]),
  )
}
