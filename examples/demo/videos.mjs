// @ts-check
import assert from 'node:assert/strict'
import { video } from 'signalbox/builders'
import { progressBar } from './progress-bar.mjs'
import { FREE, needed } from './table.mjs'
import { videoFacts } from './video-facts.mjs'

/** @typedef {import('signalbox/client').VideoTask} VideoTask */

/**
 * A video in the layout of each protocol, polled to its end; a cancelled one; and the list.
 * @param {import('./start-servers.mjs').Demo} demo
 */
export async function showVideos(demo) {
  const { client, table, webhookUrl } = demo
  table.section(
    'videos: a task is polled, announced by a signed webhook, downloaded and paid when it ends; a cancelled one is free',
  )

  const boat = await showVideo(demo, {
    model: 'wv2.6-t2v',
    file: 'video-2.6.mp4',
    facts: { seconds: 5, width: 1280, height: 720 },
    order: (options) => {
      const draft = video('wv2.6-t2v').prompt('A paper boat leaves the harbour.').tier('720p').seconds(5).shots('multi')
      return client.videos.generate(draft.webhook(webhookUrl).build(), options)
    },
  })
  const mug = await showVideo(demo, {
    model: 'wv2.7-r2v',
    file: 'video-2.7.mp4',
    facts: { seconds: 3, width: 720, height: 1280 },
    order: (options) => {
      const draft = video('wv2.7-r2v')
        .prompt('Image 1 slides over a table.')
        .tier('720p')
        .seconds(3)
        .aspectRatio('9:16')
      const withMug = draft.reference('https://cdn.example.net/mug.png')
      return client.videos.generate(withMug.webhook(webhookUrl).build(), options)
    },
  })

  const waiting = await table.row('videos.generate', 'wv2.7-t2v', async (options) => {
    // With this mark, the stand-in waits for a minute, so that there is time to cancel.
    const draft = video('wv2.7-t2v').prompt('Rain on a window. [[video:pending=60000]]').tier('1080p').seconds(2)
    const task = await client.videos.generate(draft.build(), options)
    assert.equal(task.status, 'queued')
    return { cost: FREE, value: task, note: task.id }
  })
  await table.row('videos.cancel', 'wv2.7-t2v', async (options) => {
    const { status } = await client.videos.cancel(needed(waiting, 'videos.generate'), options)
    assert.equal(status, 'cancelled')
    return { cost: FREE, note: 'cancelled, and its money is free again' }
  })

  await table.row('videos.list', '', async (options) => {
    const { data, has_more: hasMore } = await client.videos.list({ limit: 10 }, options)
    const newestFirst = [waiting, mug, boat].map((task) => needed(task, 'videos.generate').id)
    assert.deepEqual(
      data.map(({ id, status }) => [id, status]),
      newestFirst.map((id, index) => [id, index === 0 ? 'cancelled' : 'completed']),
    )
    assert.equal(hasMore, false)
    return { cost: FREE, note: `${data.length} videos, newest first` }
  })
}

/**
 * Submits a video, waits for it, receives its webhook, and downloads it.
 * @param {import('./start-servers.mjs').Demo} demo
 * @param {{
 *   model: string,
 *   file: string,
 *   facts: ReturnType<typeof videoFacts>,
 *   order: (options: import('signalbox/client').CallOptions) => Promise<VideoTask>,
 * }} wanted
 */
async function showVideo({ client, table, save, messageAbout, expectedVideoMs }, { model, file, facts, order }) {
  const ordered = await table.row('videos.generate', model, async (options) => {
    const task = await order(options)
    assert.equal(task.status, 'queued')
    // The hold lowers the balance; the charge comes at the end.
    return { cost: FREE, value: task, note: task.id }
  })

  await table.row('videos.wait', model, async () => {
    const task = await client.videos.wait(needed(ordered, 'videos.generate'), {
      intervalMs: 100,
      timeoutMs: 10_000,
      onProgress: progressBar(model, expectedVideoMs),
    })
    assert.equal(task.status, 'completed', task.error?.message)
    return { cost: task.cost, note: `completed, ${facts.seconds} s` }
  })

  await table.row('videos webhook', model, async () => {
    const { id } = needed(ordered, 'videos.generate')
    const { type, data } = await messageAbout(id)
    assert.equal(type, 'video.generation.completed')
    assert.equal(data.status, 'completed')
    return { cost: FREE, note: `${type}, its signature verified` }
  })

  await table.row('videos.get', model, async (options) => {
    const task = await client.videos.get(needed(ordered, 'videos.generate'), options)
    assert.equal(task.status, 'completed')
    assert.ok(task.content?.video_url, 'it has no link')
    return { cost: FREE, note: `completed, cost ${task.cost}` }
  })

  await table.row('videos.content', model, async (options) => {
    const answer = await client.videos.content(needed(ordered, 'videos.generate'), options)
    const bytes = Buffer.from(await answer.bytes())
    assert.deepEqual(videoFacts(bytes), facts)
    return { cost: FREE, note: await save(file, bytes) }
  })
  return ordered
}
