import {
  chat,
  embedding,
  image,
  imageEdit,
  moderation,
  response,
  speech,
  video,
} from '../../src/client/builders/index.ts'
import { createClient } from '../../src/client/index.ts'

const client = createClient({ baseURL: 'http://127.0.0.1:8787/v1' })
const url = 'https://cdn.example.net/a.png'

// Built requests can be sent.
await client.videos.generate(video('wv2.7-r2v').prompt('Image 1').reference(url, { voice: url }).tier('720p').build())
await client.videos.generate(video('wv2.6-r2v-flash').prompt('character1').reference(url).mute().shots('multi').build())
await client.videos.generate(video('wv2.7-i2v').firstFrame(url).lastFrame(url).seconds(5).build())
await client.videos.generate(video('a-model-of-mine', { protocol: 'wan-2-7' }).prompt('a').firstClip(url).build())
await client.images.generate(image('gmn-3.1-flash-image-preview').prompt('a').size('512px').thinking('high').build())
await client.images.generate(image('qw-image-edit-plus').prompt('a').reference(url).size('1024*1024').build())
await client.images.generate(image('gp-image-2').prompt('a').size('1536x864').format('webp', 80).build())
await client.images.edit(imageEdit('gp-image-2').prompt('a').image(new Blob([])).background('opaque').build())
await client.images.edit(imageEdit('de-2').prompt('a').image(new Blob([])).urls().build())
await client.audio.speech.create(speech('qw3-tts-instruct-flash').text('a').instructions('softly').build())
const judged = await client.moderations.create(moderation('omni-moderation-latest').text('a').picture(url).build())
void judged.results[0]?.categories['sexual/minors']
// @ts-expect-error The categories of the model are known.
void judged.results[0]?.categories['no-such-category']
const judgedElsewhere = await client.moderations.create(moderation('a-model-of-mine').text('a').build())
void judgedElsewhere.results[0]?.category_scores?.['selfharm']
const streamed = await client.chat.completions.create(chat('cl-opus-4-7').user('a').stream().build())
streamed.abort()
const replied = await client.responses.create(response('gmn-2.5-pro').user('a').json().build())
void (await client.responses.stream(response('a-model-of-mine').continuing(replied).user('b').build()))
const answered = await client.chat.completions.create(chat('cl-opus-4-7').user('a').build())
void answered.choices
const drawn = await client.images.generate(image('gp-image-2').prompt('a').stream(2).size('1024x1024').build())
for await (const event of drawn) if (event.type === 'image_generation.partial_image') void event.partial_image_index
const interacted = await client.images.generate(image('gmn-2.5-flash-image').stream().prompt('a').build())
for await (const event of interacted) if (event.event_type === 'step.delta') void event.delta.type
const edited = await client.images.edit(imageEdit('gp-image-1').prompt('a').image(new Blob([])).stream().build())
for await (const event of edited) if (event.type === 'image_edit.completed') void event.b64_json
const anyhow = await client.images.generate(image('a-model-of-mine', { protocol: 'generations' }).stream(1).build())
anyhow.abort()
const spoken = await client.audio.speech.create(speech('qw3-tts-flash').events().text('a').build())
for await (const event of spoken) if (event.type === 'speech.audio.delta') void event.audio
const sound = await client.audio.speech.create(speech('qw3-tts-flash').text('a').build())
void sound.contentType
const vectors = await client.embeddings.create(embedding('vy-4').input('a').dimensions(512).base64().build())
void vectors.data[0]?.embedding.buffer

// Unsupported steps do not exist, or do not accept the value.
const i2v = video('wv2.7-i2v')
// @ts-expect-error the picture decides
i2v.aspectRatio
// @ts-expect-error a step of r2v
i2v.reference
// @ts-expect-error a step of 2.6
i2v.shots
// @ts-expect-error a tier of 2.5
i2v.tier('480p')
// @ts-expect-error only the flash models can be mute
video('wv2.6-i2v').mute
// @ts-expect-error 2.6 begins with a picture and ends as it likes
video('wv2.6-i2v').lastFrame
// @ts-expect-error 2.6 knows no voices
video('wv2.6-r2v').reference(url, { voice: url })
// @ts-expect-error 5 or 10
video('wv2.5-t2v-preview').seconds(7)
// @ts-expect-error no such shape
video('wv2.7-t2v').aspectRatio('2:1')
// @ts-expect-error this model works from text alone
image('qw-image-max').reference
// @ts-expect-error it keeps the size of the picture
image('qw-image-edit').size
// @ts-expect-error a size of another shape
image('qw-image-2.0').size('1024x1024')
// @ts-expect-error 1K only
image('gmn-2.5-flash-image').size('2K')
// @ts-expect-error it does not think
image('gmn-2.5-flash-image').thinking
// @ts-expect-error a step of another shape
image('gp-image-2').aspectRatio
// @ts-expect-error no choice of format
imageEdit('de-2').format
image('gpt-image-2.5-sunburst').quality('max').size('1536x864').stream(2)
// @ts-expect-error no choice of format
image('de-2').format
// @ts-expect-error does not stream
image('dall-e-2').stream
// @ts-expect-error listed sizes only
image('gpt-image-1').size('1600x900')
// @ts-expect-error answers with bytes only
imageEdit('gp-image-2').urls
// @ts-expect-error a size of the other family
imageEdit('gp-image-2').size('256x256')
// @ts-expect-error does not stream
imageEdit('de-2').stream
// @ts-expect-error does not stream
image('qw-image-2.0').stream
// @ts-expect-error no unfinished pictures in this shape
image('gmn-2.5-flash-image').stream(1)
// @ts-expect-error 3 at most
image('gp-image-2').stream(4)
// @ts-expect-error 3 at most
imageEdit('gp-image-2').stream(4)
// @ts-expect-error a stream has no data
drawn.data
// @ts-expect-error events have no bytes of their own
spoken.bytes
// @ts-expect-error closed to four sizes
embedding('vy-4').dimensions(768)
// @ts-expect-error takes none
speech('qw3-tts-flash').instructions
// @ts-expect-error WAV only
speech('qw3-tts-instruct-flash').format('mp3')
// @ts-expect-error a voice of the basic model
speech('qw3-tts-instruct-flash').voice('Ryan')
// @ts-expect-error json, not text
chat('cl-opus-4-7').user(1)

// The vendor's own ids have the steps of the public ones.
await client.videos.generate(video('wan2.7-i2v').firstFrame(url).seconds(5).build())
await client.chat.completions.create(chat('claude-opus-4-7').user('a').build())
// @ts-expect-error 2.6 begins with a picture and ends as it likes
video('wan2.6-i2v').lastFrame
// @ts-expect-error closed to four sizes
embedding('voyage-4').dimensions(768)
