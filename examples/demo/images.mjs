// @ts-check
import assert from 'node:assert/strict'
import { image, imageEdit } from 'signalbox/builders'
import { drawMask } from './draw-mask.mjs'
import { pictureFacts } from './image-facts.mjs'
import { needed } from './table.mjs'

/**
 * Creates images in the three shapes, continues a conversation, and edits an image.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showPictures({ client, table, save, fileOf }) {
  table.section('images: each file is complete, with the requested format and size')
  await table.row('images.generate', 'qw-image-2.0', async (options) => {
    const request = image('qw-image-2.0').prompt('a paper boat on a desk').size('1664*928').build()
    const answer = await client.images.generate(request, options)
    const link = answer.output.choices[0]?.message.content[0]?.image
    // The signed link expires after a day: store the image, not the link.
    const response = await fetch(link ?? '')
    assert.ok(response.ok, `the image cannot be fetched: ${response.status}`)
    const bytes = Buffer.from(await response.arrayBuffer())
    assert.deepEqual(pictureFacts(bytes), { format: 'png', width: 1664, height: 928 })
    return { note: await save('multimodal.png', bytes) }
  })

  const mug = image('gmn-3.1-flash-image-preview').size('1K').aspectRatio('4:3')
  const begun = await table.row('images.generate', 'gmn-3.1-flash-image-preview', async (options) => {
    const answer = await client.images.generate(mug.prompt('a blue mug on a table').build(), options)
    const bytes = pictureOf(answer)
    assert.deepEqual(pictureFacts(bytes), { format: 'jpeg', width: 1200, height: 896 })
    return { value: { id: answer.id, bytes }, note: await save('interaction.jpg', bytes) }
  })

  await table.row('images.generate continued', 'gmn-3.1-flash-image-preview', async (options) => {
    const { id, bytes: before } = needed(begun, 'the image of a mug')
    const answer = await client.images.generate(mug.prompt('make the mug green').continuing(id).build(), options)
    const bytes = pictureOf(answer)
    assert.deepEqual(pictureFacts(bytes), { format: 'jpeg', width: 1200, height: 896 })
    assert.ok(!bytes.equals(before), 'the image has not changed')
    return { note: await save('interaction-continued.jpg', bytes) }
  })

  const drawn = await table.row('images.generate', 'gp-image-2', async (options) => {
    const request = image('gp-image-2').prompt('a harbour in the morning').size('1024x1024').quality('low').build()
    const answer = await client.images.generate(request, options)
    const bytes = Buffer.from(answer.data[0]?.b64_json ?? '', 'base64')
    assert.deepEqual(pictureFacts(bytes), { format: 'png', width: 1024, height: 1024 })
    return { value: fileOf('generation.png'), note: await save('generation.png', bytes) }
  })

  await table.row('images.edit', 'gp-image-2', async (options) => {
    const request = imageEdit('gp-image-2')
      .prompt('put the mug on the quay')
      .image({ path: needed(drawn, 'the image of a harbour') })
      .image(new Blob([needed(begun, 'the image of a mug').bytes], { type: 'image/jpeg' }))
      // The edit changes the transparent part; the mask has the size of the first image.
      .mask(drawMask(1024, 1024))
      .size('1024x1536')
      .format('webp', 80)
      .build()
    const answer = await client.images.edit(request, options)
    const bytes = Buffer.from(answer.data[0]?.b64_json ?? '', 'base64')
    assert.deepEqual(pictureFacts(bytes), { format: 'webp', width: 1024, height: 1536 })
    return { note: await save('edit.webp', bytes) }
  })
}

/**
 * Returns the image of an interaction: text and images are in separate steps.
 * @param {import('signalbox/client').InteractionImageAnswer} answer
 */
function pictureOf({ status, steps }) {
  assert.equal(status, 'completed')
  const blocks = steps.flatMap((step) => step.content ?? [])
  return Buffer.from(blocks.find((block) => block.type === 'image')?.data ?? '', 'base64')
}
