import { defineTool, MAKES } from '../tool.ts'
import { answeredPictures, picturesOutput } from './answered-pictures.ts'
import { imageArguments, imageBody } from './image-request.ts'

/** `POST /v1/images/generations`, in the shape of the model. */
export const generateImage = defineTool({
  name: 'generate_image',
  title: 'Generate an image',
  description:
    'Draws pictures from a prompt, and for some models from reference images. Returns image blocks, or links that are ' +
    'valid for a limited time. Charged by the picture or by tokens.',
  annotations: MAKES,
  input: imageArguments,
  output: picturesOutput,
  async answer(args, { gateway, json }) {
    const found = gateway.catalog.find(args.model)
    const answer = await json({
      method: 'POST',
      path: '/v1/images/generations',
      body: imageBody(args, found?.protocol),
      idempotencyKey: args.idempotency_key,
    })
    return answeredPictures(answer, found?.id ?? args.model)
  },
})
