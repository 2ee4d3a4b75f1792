import { z } from 'zod'
import { listOf } from '../list-of.ts'
import type { ImageReference } from './image-edit-request.ts'

const reference = z
  .looseObject({ image_url: z.string().min(1).nullish(), file_id: z.string().min(1).nullish() })
  .refine(({ image_url, file_id }) => isGiven(image_url) !== isGiven(file_id), 'needs either image_url or file_id')

/** Pictures of a JSON body (OpenAI API reference, "Create image edit"). */
export const imageReferencesSchema = z.looseObject({
  images: listOf(reference).min(1),
  mask: reference.nullish(),
})

/** A picture in a checked JSON body, reduced to what names it. */
export function imageReference(entry: z.infer<typeof reference>): ImageReference {
  const { image_url, file_id } = entry
  return isGiven(image_url) ? { image_url } : { file_id: file_id ?? '' }
}

function isGiven(value: string | null | undefined): value is string {
  return value !== undefined && value !== null
}
