/** What a model does; decides the endpoint that serves it. */
export type ModelKind = 'chat' | 'embedding' | 'image' | 'image_edit' | 'video' | 'speech'
