import { z } from 'zod'
import { defineTool, MAKES } from '../tool.ts'
import { answeredPictures, picturesOutput } from './answered-pictures.ts'
import { idempotencyKey, model, picture } from './arguments.ts'
import { givenPicture, pictureUrl } from './picture-argument.ts'

/** `POST /v1/images/edits`, as JSON. */
export const editImage = defineTool({
  name: 'edit_image',
  title: 'Edit an image',
  description:
    'Changes pictures by an instruction, within a mask if one is given. For models of the kind image_edit; others that ' +
    'take reference images are called by generate_image. Charged by the picture or by tokens.',
  annotations: MAKES,
  input: z.object({
    model,
    prompt: z.string().min(1).describe('What to change.'),
    images: z.array(picture).min(1).max(16).describe('The pictures; a mask applies to the first.'),
    mask: picture.optional().describe('A PNG of the same size; its transparent area is changed.'),
    n: z.int().min(1).max(10).optional().describe('How many pictures.'),
    size: z.string().optional().describe('Such as 1024x1024. Default auto.'),
    quality: z.string().optional().describe('auto, low, medium or high.'),
    output_format: z.enum(['png', 'jpeg', 'webp']).optional(),
    background: z.enum(['transparent', 'opaque', 'auto']).optional(),
    response_format: z.enum(['b64_json', 'url']).optional().describe('url only for models that answer with addresses.'),
    idempotency_key: idempotencyKey,
  }),
  output: picturesOutput,
  async answer({ images, mask, idempotency_key: key, ...fields }, { gateway, json }) {
    const body = {
      ...fields,
      images: images.map((entry, index) => ({ image_url: pictureUrl(givenPicture(entry, `images[${index}]`)) })),
      ...(mask === undefined ? {} : { mask: { image_url: pictureUrl(givenPicture(mask, 'mask')) } }),
    }
    const answer = await json({ method: 'POST', path: '/v1/images/edits', body, idempotencyKey: key })
    return answeredPictures(answer, gateway.catalog.find(fields.model)?.id ?? fields.model)
  },
})
