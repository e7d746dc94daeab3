# Answers what Rack reads, in hexadecimal: rack.rb rack PORT
require 'rack'
require 'rack/handler/webrick'
require 'json'
text = ->(value) { value.nil? ? nil : value.is_a?(String) ? value.b.unpack1('H*') : "json:#{value.inspect}" }
app = lambda do |env|
  r = Rack::Request.new(env)
  [200, {}, [JSON.generate('cookie' => text[r.cookies['sid']], 'query' => text[r.GET['k']],
                           'header' => text[(env['HTTP_X_API_KEY'] || '').strip])]]
end
Rack::Handler::WEBrick.run(app, Host: '127.0.0.1', Port: ARGV[1].to_i, AccessLog: [], Logger: WEBrick::Log.new(File::NULL))
