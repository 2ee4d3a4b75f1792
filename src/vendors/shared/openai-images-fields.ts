import type { CatalogModel } from '../../catalog/model.ts'
import {
  AUTO_SIZE,
  losesQuality,
  type PictureOptions,
  takesAuto,
  vendorQuality,
} from '../../endpoints/images/openai/openai-image-request.ts'

/** What a request's fields become on the way to the vendor. */
export interface PictureFields {
  /** New values by name; undefined: the field is left out. */
  readonly changes: ReadonlyMap<string, string | undefined>
  /** Fields that the caller set and that have no effect at this model. */
  readonly dropped: readonly string[]
}

/**
 * What must change: the model id, qualities under another name, and what the model's vendor refuses though the API
 * specification lets callers send it. `b64_json` is what callers get when they say nothing, so it is asked for where the
 * vendor would choose. A model without abilities gets the caller's fields as they are.
 */
export function pictureFields(options: PictureOptions, model: CatalogModel): PictureFields {
  const changes = new Map<string, string | undefined>([['model', model.upstream]])
  const dropped: string[] = []
  const { image } = model
  if (image === undefined) return { changes, dropped }
  const { size, quality, response_format: format } = options
  if (size === AUTO_SIZE && !takesAuto(image)) changes.set('size', undefined)
  const known = vendorQuality(quality, image)
  if (quality !== undefined && quality !== null && known !== quality) changes.set('quality', known)
  if (losesQuality(quality, image)) dropped.push('quality')
  if (image.answersWithUrls === true) {
    if (format === undefined || format === null) changes.set('response_format', 'b64_json')
  } else if (format !== undefined) {
    changes.set('response_format', undefined)
    if (format === 'url') dropped.push('response_format')
  }
  return { changes, dropped }
}
