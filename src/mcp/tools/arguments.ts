import { z } from 'zod'

/** Public id of a model. */
export const model = z.string().min(1).describe('Id of a model, as list_models gives it.')

/** For calls that cost money: equal calls under one key are carried out and charged once. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .optional()
  .describe('Makes repeating safe: calls with the same key and arguments are carried out and charged once in 24 hours.')

/** Id of a video task. */
export const taskId = z.string().min(1).max(10_000).describe('The task_id that submit_video gave.')

/** A picture that a call brings along. */
export const picture = z
  .object({
    data: z.string().min(1).optional().describe('The picture in base64, without a data: prefix.'),
    mime_type: z
      .string()
      .optional()
      .describe('Media type of data, such as image/png. Required with data, and by some models with url.'),
    url: z.string().min(1).optional().describe('Public https URL of the picture, instead of data.'),
  })
  .describe('A picture: data with mime_type, or url.')

/** A picture argument that has been checked against {@link picture}. */
export type PictureArgument = z.infer<typeof picture>
